package plugins

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero/api"

	"github.com/latchkey-proxy/latchkey/store"
)

const docsPath = "../docs/PLUGIN-ABI.md"

func TestDocs(t *testing.T) {
	want := Docs()
	if os.Getenv("LATCHKEY_UPDATE") == "1" {
		if err := os.WriteFile(docsPath, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(docsPath)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/PLUGIN-ABI.md is not what the host functions say; run LATCHKEY_UPDATE=1 go test ./plugins -run Docs")
	}
}

// TestDocumented checks that every function is described as it is declared.
func TestDocumented(t *testing.T) {
	if len(docsSubjects) != len(abiFunctions()) {
		t.Errorf("%d headings for %d subjects of host functions", len(docsSubjects), len(abiFunctions()))
	}
	usage := regexp.MustCompile(`^(\w+)\((.*)\)( -> (i32|i64|f64))?$`)
	for _, subject := range abiFunctions() {
		for _, f := range subject {
			m := usage.FindStringSubmatch(f.usage)
			if m == nil {
				t.Errorf("%s: the usage %q is not name(parameters) -> result", f.name, f.usage)
				continue
			}
			params := 0
			if m[2] != "" {
				params = strings.Count(m[2], ",") + 1
			}
			if m[1] != f.name || params != len(f.params) {
				t.Errorf("%s with %d parameters is described as %s", f.name, len(f.params), f.usage)
			}
			if result := ""; len(f.results) > 0 {
				if result = api.ValueTypeName(f.results[0]); result != m[4] {
					t.Errorf("%s returns %s and is described as %s", f.name, result, f.usage)
				}
			} else if m[4] != "" {
				t.Errorf("%s returns nothing and is described as %s", f.name, f.usage)
			}
			if !strings.HasSuffix(f.doc, ".") {
				t.Errorf("%s: the description %q is no sentence", f.name, f.doc)
			}
			if pointers := regexp.MustCompile(`len|cap|frame`).MatchString(m[2]); pointers != (f.memory != "") {
				t.Errorf("%s: it takes pointers: %v, it has a picture of memory: %v", f.name, pointers, f.memory != "")
			}
		}
	}
	for _, e := range guestExports {
		if usage, doc := guestDocs(e.name); usage == "" || doc == "" {
			t.Errorf("the export %s is not described", e.name)
		}
	}
}

const headerPath = "sdk/c/latchkey.h"

func header(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(headerPath)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestHeader compares the declarations of the C header with the host functions.
func TestHeader(t *testing.T) {
	cTypes := map[string]api.ValueType{
		"const void *": i32, "void *": i32, "uint32_t ": i32, "int32_t ": i32, "int64_t ": i64, "double ": f64,
		"uint32_t *": i32, "int64_t *": i32, "const char *": i32, "const struct lk_arg *": i32,
	}
	param := regexp.MustCompile(`^((?:const )?(?:struct )?\w+ \*?)\w+$`)
	declared := make(map[string]bool)
	for _, m := range regexp.MustCompile(`LK_IMPORT\("(\w+)"\)\s+(\w+) lk_(\w+)\(([^)]*)\);`).FindAllStringSubmatch(header(t), -1) {
		name := m[1]
		declared[name] = true
		inC := name
		if name == "wake" {
			inC = "wake_key" // lk_wake is an export
		}
		if m[3] != inC {
			t.Errorf("%s is imported as lk_%s, want lk_%s", name, m[3], inC)
		}
		f := abiByName(name)
		if f == nil {
			t.Errorf("the header has %s, which is not in the ABI", name)
			continue
		}
		var params, results []api.ValueType
		if m[4] != "void" {
			for _, p := range strings.Split(strings.Join(strings.Fields(m[4]), " "), ", ") {
				parts := param.FindStringSubmatch(p)
				if parts == nil || cTypes[parts[1]] == 0 {
					t.Fatalf("%s: the parameter %q is of a type this test does not know", name, p)
				}
				params = append(params, cTypes[parts[1]])
			}
		}
		if m[2] != "void" {
			results = types(cTypes[m[2]+" "])
		}
		if !sameTypes(params, f.params) || !sameTypes(results, f.results) {
			t.Errorf("the header declares %s%s, the ABI has %s", name, signature(params, results), signature(f.params, f.results))
		}
	}
	for _, subject := range abiFunctions() {
		for _, f := range subject {
			if !declared[f.name] {
				t.Errorf("the header does not declare %s%s", f.name, signature(f.params, f.results))
			}
		}
	}
	if n := strings.Count(header(t), "LK_IMPORT(\""); n != len(declared) {
		t.Errorf("the header has %d imports, of which %d were understood", n, len(declared))
	}
}

// TestHeaderNumbers compares the header's constants with those of the host.
func TestHeaderNumbers(t *testing.T) {
	got := make(map[string]string)
	for _, m := range regexp.MustCompile(`(?m)^#define (LK_\w+) \(?(-?\d+)\)?`).FindAllStringSubmatch(header(t), -1) {
		got[m[1]] = m[2]
	}
	for name, want := range map[string]int{
		"LK_ABI": abiVersion, "LK_OK": 0, "LK_NIL": codeNil,
		"LK_ERROR": -100, "LK_EWRONGTYPE": codeWrongType, "LK_EDENIED": codeDenied, "LK_EOOM": codeOOM, "LK_EINVALID": codeInvalid,
		"LK_ENOTINT": codeNotInt, "LK_ELIMIT": codeLimit, "LK_ECONTEXT": codeContext,
		"LK_NX": setNX, "LK_XX": setXX, "LK_KEEPTTL": setKeepTTL, "LK_AT": setAt,
		"LK_TYPE_NONE": typeNone, "LK_TYPE_STRING": typeString, "LK_TYPE_LIST": typeList, "LK_TYPE_SET": typeSet,
		"LK_TYPE_HASH": typeHash, "LK_TYPE_ZSET": typeZset, "LK_TYPE_STREAM": typeStream, "LK_TYPE_OWN": typeOwn, "LK_TYPE_OTHER": typeOther,
		"LK_REPLY_NULL": int(kindNull), "LK_REPLY_INT": int(kindInt), "LK_REPLY_BULK": int(kindBulk), "LK_REPLY_SIMPLE": int(kindSimple),
		"LK_REPLY_ERROR": int(kindError), "LK_REPLY_ARRAY": int(kindArray), "LK_REPLY_MAP": int(kindMap), "LK_REPLY_SET": int(kindSet),
		"LK_REPLY_DOUBLE": int(kindDouble), "LK_REPLY_BOOL": int(kindBool), "LK_REPLY_BIGNUM": int(kindBigNumber), "LK_REPLY_VERBATIM": int(kindVerbatim),
		"LK_WOKEN": wokenByKey, "LK_TIMEOUT": wokenByTime, "LK_AGAIN": wakeAgain, "LK_LATER": 1<<32 - 1,
		"LK_CLIENT_ID": clientID, "LK_CLIENT_NAME": clientName, "LK_CLIENT_USER": clientUser, "LK_CLIENT_ADDR": clientAddr,
		"LK_EVENT_GENERIC": classNumber(store.NotifyGeneric), "LK_EVENT_STRING": classNumber(store.NotifyString),
		"LK_EVENT_LIST": classNumber(store.NotifyList), "LK_EVENT_SET": classNumber(store.NotifySet), "LK_EVENT_HASH": classNumber(store.NotifyHash),
		"LK_EVENT_ZSET": classNumber(store.NotifyZset), "LK_EVENT_STREAM": classNumber(store.NotifyStream),
		"LK_EVENT_EXPIRED": classNumber(store.NotifyExpired), "LK_EVENT_EVICTED": classNumber(store.NotifyEvicted),
		"LK_EVENT_NEW": classNumber(store.NotifyNew), "LK_EVENT_MODULE": classNumber(store.NotifyModule),
		"LK_DEBUG": logDebug, "LK_INFO": logInfo, "LK_WARNING": logWarning,
	} {
		if got[name] != strconv.Itoa(want) {
			t.Errorf("the header defines %s as %q, the host has %d", name, got[name], want)
		}
		delete(got, name)
	}
	for name, value := range got {
		t.Errorf("the header defines %s as %s, which is not compared with the host", name, value)
	}
}

// TestPrefixes reads the log line of a loaded module as its operator does.
func TestPrefixes(t *testing.T) {
	for _, tt := range []struct {
		list []string
		want string
	}{
		{nil, "no key"},
		{[]string{""}, "every key"},
		{[]string{"a:", ""}, "every key"},
		{[]string{"lock:", "a b"}, `"lock:" "a b"`},
	} {
		if got := Prefixes(tt.list); got != tt.want {
			t.Errorf("the prefixes %q are shown as %s, want %s", tt.list, got, tt.want)
		}
	}
}
