package store_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/latchkey-proxy/latchkey/store"
	"github.com/latchkey-proxy/latchkey/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStore(t *testing.T) { storetest.Run(t, store.New) }
