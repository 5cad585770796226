package contention_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/latchkey-proxy/latchkey/examples/locks/contention"
	"github.com/latchkey-proxy/latchkey/examples/locks/lock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSectionCounts(t *testing.T) {
	for _, test := range []struct {
		name  string
		visit func(s *contention.Section)
		want  contention.Count
	}{
		{"one after the other", func(s *contention.Section) {
			s.Enter().Leave()
			s.Enter().Leave()
		}, contention.Count{Holders: 2, Overlapped: 0, Most: 1}},
		{"both inside", func(s *contention.Section) {
			a, b := s.Enter(), s.Enter()
			a.Leave()
			b.Leave()
		}, contention.Count{Holders: 2, Overlapped: 2, Most: 2}},
		{"one comes and goes during another's stay", func(s *contention.Section) {
			a := s.Enter()
			s.Enter().Leave()
			a.Leave()
			s.Enter().Leave()
		}, contention.Count{Holders: 3, Overlapped: 2, Most: 2}},
		{"leaving twice counts once", func(s *contention.Section) {
			a := s.Enter()
			a.Leave()
			a.Leave()
			s.Enter().Leave()
		}, contention.Count{Holders: 2, Overlapped: 0, Most: 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var s contention.Section
			test.visit(&s)
			if got := s.Count(); got != test.want || s.Inside() != 0 {
				t.Errorf("counted %v and %d still inside; want %v and nobody", got, s.Inside(), test.want)
			}
		})
	}
}

// A lock that does not lock must be noticed: two contenders meet in the section, because neither leaves before
// both are in.
func TestLoadNoticesALockThatDoesNotLock(t *testing.T) {
	var section contention.Section
	var both sync.WaitGroup
	both.Add(2)
	err := contention.Load{
		Contenders: 2,
		Holds:      2,
		Acquire: func(context.Context, int) (func(context.Context) error, error) {
			return func(context.Context) error { return nil }, nil
		},
		Work: func(context.Context) error {
			both.Done()
			both.Wait()
			return nil
		},
	}.Run(t.Context(), &section)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := section.Count(), (contention.Count{Holders: 2, Overlapped: 2, Most: 2}); got != want {
		t.Errorf("two holders without a lock: counted %v, want %v", got, want)
	}
}

func TestLoadStopsAtTheFirstError(t *testing.T) {
	broken := errors.New("broken")
	err := contention.Load{
		Contenders: 4,
		Holds:      1000,
		Acquire:    func(context.Context, int) (func(context.Context) error, error) { return nil, broken },
	}.Run(t.Context(), new(contention.Section))
	if !errors.Is(err, broken) {
		t.Errorf("Run returned %v, want the error of Acquire", err)
	}
}

// mutex is a lock in memory: taken at most once, until it is taken away.
type mutex struct {
	mu   sync.Mutex
	held bool
}

func (m *mutex) try(context.Context, int) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held {
		return false, nil
	}
	m.held = true
	return true, nil
}

func (m *mutex) takeAway() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held = false
}

func TestRound(t *testing.T) {
	const contenders = 5
	for _, test := range []struct {
		name  string
		round func(m *mutex) contention.Round
		want  contention.Count
	}{
		{"only one gets a lock", func(m *mutex) contention.Round {
			return contention.Round{Try: m.try}
		}, contention.Count{Holders: 1, Overlapped: 0, Most: 1}},
		{"a lock taken away by the late client goes to a second", func(m *mutex) contention.Round {
			return contention.Round{Try: m.try, Late: func(context.Context) (bool, error) {
				m.takeAway()
				return false, nil
			}}
		}, contention.Count{Holders: 2, Overlapped: 2, Most: 2}},
		{"the late client believes to hold it, too", func(m *mutex) contention.Round {
			return contention.Round{Try: m.try, Late: func(context.Context) (bool, error) { return true, nil }}
		}, contention.Count{Holders: 2, Overlapped: 2, Most: 2}},
		{"nobody gets in before the late client lets them", func(m *mutex) contention.Round {
			m.held = true
			return contention.Round{Tries: 3, Try: m.try, Late: func(context.Context) (bool, error) {
				m.takeAway()
				return false, nil
			}}
		}, contention.Count{Holders: 1, Overlapped: 0, Most: 1}},
		{"nobody gets in", func(m *mutex) contention.Round {
			m.held = true
			return contention.Round{Tries: 3, Try: m.try}
		}, contention.Count{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for mode, run := range map[string]func(contention.Round, context.Context, *contention.Section, int) error{
				"InOrder": contention.Round.InOrder, "AtOnce": contention.Round.AtOnce,
			} {
				var section contention.Section
				if err := run(test.round(new(mutex)), t.Context(), &section, contenders); err != nil {
					t.Fatalf("%s: %v", mode, err)
				}
				if got := section.Count(); got != test.want {
					t.Errorf("%s: counted %v, want %v", mode, got, test.want)
				}
			}
		})
	}
}

func TestRoundReportsErrors(t *testing.T) {
	broken := errors.New("broken")
	fail := func(context.Context) (bool, error) { return false, broken }
	for name, round := range map[string]contention.Round{
		"Before": {Before: func(context.Context) error { return broken }, Try: new(mutex).try},
		"Try":    {Try: func(ctx context.Context, _ int) (bool, error) { return fail(ctx) }, Late: func(context.Context) (bool, error) { return false, nil }},
		"Late":   {Try: new(mutex).try, Late: fail},
	} {
		if err := round.InOrder(t.Context(), new(contention.Section), 3); !errors.Is(err, broken) {
			t.Errorf("InOrder with a broken %s returned %v, want its error", name, err)
		}
		if err := round.AtOnce(t.Context(), new(contention.Section), 3); !errors.Is(err, broken) {
			t.Errorf("AtOnce with a broken %s returned %v, want its error", name, err)
		}
	}
}

func TestPausedClientThatNeverReachesItsStep(t *testing.T) {
	for name, clientErr := range map[string]error{"success": nil, "failure": errors.New("broken")} {
		err := contention.PauseAt(lock.StepSet).Start(t.Context(), func(context.Context) error { return clientErr })
		if err == nil || clientErr != nil && !errors.Is(err, clientErr) {
			t.Errorf("%s: Start returned %v for a client that ended before its step", name, err)
		}
	}
}
