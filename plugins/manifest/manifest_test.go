package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const full = `{
  "name": "cad", "version": "1.12.3", "abi": {"min": 1, "max": 2},
  "commands": [
    {"name": "CAD.WASM", "id": 1, "arity": 3, "flags": ["write", "fast"], "keys": {"first": 1, "last": 1, "step": 1},
     "acl": ["string"], "summary": "Deletes a string.", "since": "1.0.0", "group": "string"},
    {"name": "cad.all", "id": 0, "arity": -2, "flags": ["readonly"], "keys": {"first": 1, "last": -1, "step": 1}, "summary": "x"},
    {"name": "cad.version", "id": 7, "arity": 1, "summary": "x"}
  ],
  "capabilities": {"read": [""], "write": ["lock:"], "commands": ["get"], "timers": true, "events": ["expired"]},
  "limits": {"fuel": 1000000, "memory_pages": 4, "instances": 2},
  "config": [
    {"name": "ttl", "type": "int", "default": -30000, "summary": "Milliseconds."},
    {"name": "prefix", "type": "string", "default": "a"},
    {"name": "strict", "type": "bool", "default": true}
  ]
}`

func TestParse(t *testing.T) {
	got, err := Parse([]byte(full))
	if err != nil {
		t.Fatal(err)
	}
	want := &Manifest{
		Name: "cad", Version: Version{1, 12, 3}, ABI: ABI{1, 2},
		Commands: []Command{
			{
				Name: "CAD.WASM", ID: 1, Arity: 3, Flags: []string{"write", "fast"}, Keys: &Keys{1, 1, 1},
				ACL: []string{"string"}, Summary: "Deletes a string.", Since: "1.0.0", Group: "string",
			},
			{Name: "cad.all", ID: 0, Arity: -2, Flags: []string{"readonly"}, Keys: &Keys{1, -1, 1}, Summary: "x", Group: "module"},
			{Name: "cad.version", ID: 7, Arity: 1, Summary: "x", Group: "module"},
		},
		Capabilities: Capabilities{
			Read: []string{""}, Write: []string{"lock:"}, Commands: []string{"GET"}, Timers: true, Events: []string{"expired"},
		},
		Limits: Limits{Fuel: 1_000_000, MemoryPages: 4, Instances: 2},
		Config: []Param{
			{Name: "ttl", Type: Int, Default: "-30000", Summary: "Milliseconds.", Min: math.MinInt64, Max: math.MaxInt64},
			{Name: "prefix", Type: String, Default: "a"},
			{Name: "strict", Type: Bool, Default: "yes"},
		},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("wanted -, got +:\n%s", d)
	}
	if got.Version.Number() != 11203 || got.Version.String() != "1.12.3" {
		t.Errorf("version %s, number %d", got.Version, got.Version.Number())
	}
}

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{`"name": "cad", `, ``, `manifest: name: found nothing, wanted this field`},
		{`"name": "cad"`, `"name": "9cad"`, `manifest: name: found "9cad", wanted 1 to 64 letters`},
		{`"name": "cad"`, `"name": "c/d"`, `name: found "c/d"`},
		{`"name": "cad"`, `"name": ""`, `name: found ""`},
		{`"name": "cad"`, `"name": 7`, `name: found the number 7, wanted a string`},
		{`"name": "cad"`, `"name": null`, `name: found null`},
		{`"name": "cad"`, `"name": "cad", "name": "cad"`, `name: found it twice`},
		{`"name": "cad"`, `"Name": "cad"`, `name: found nothing`},
		{`"version": "1.12.3"`, `"version": "1.2"`, `version: found "1.2", wanted a version such as "1.12.3"`},
		{`"version": "1.12.3"`, `"version": "1.100.3"`, `version: found "1.100.3"`},
		{`"version": "1.12.3"`, `"version": "01.1.3"`, `version: found "01.1.3"`},
		{`{"min": 1, "max": 2}`, `{"min": 2, "max": 1}`, `abi.max: found 1, wanted a whole number from 2 to`},
		{`{"min": 1, "max": 2}`, `{"min": 0, "max": 1}`, `abi.min: found 0, wanted a whole number from 1`},
		{`{"min": 1, "max": 2}`, `{"min": 1.5, "max": 2}`, `abi.min: found 1.5, wanted a whole number`},
		{`{"min": 1, "max": 2}`, `1`, `abi: found the number 1, wanted an object`},
		{`{"min": 1, "max": 2}`, `{"min": 1, "max": 2, "mid": 1}`, `abi.mid: found an unknown field, wanted one of "min", "max"`},
		{`"commands": [`, `"functions": [], "commands": [`, `functions: found a list, wanted nothing: functions in WebAssembly are reserved`},
		{`"commands": [`, `"author": "me", "commands": [`, `author: found an unknown field, wanted one of "name", "version"`},
		{`"CAD.WASM"`, `"CAD WASM"`, `commands[0].name: found "CAD WASM"`},
		{`"cad.all"`, `"cad.wasm"`, `commands[1].name: found "cad.wasm", wanted a name of its own: commands[0] has it already`},
		{`"id": 7`, `"id": 1`, `commands[2].id: found 1, wanted an id of its own: commands[0] has it already`},
		{`"id": 7`, `"id": 4294967296`, `commands[2].id: found 4294967296`},
		{`"arity": 1,`, `"arity": 0,`, `commands[2].arity: found 0, wanted the number of arguments`},
		{`["readonly"]`, `["readonly", "quick"]`, `commands[1].flags[1]: found "quick", wanted one of "write", "readonly"`},
		{`["readonly"]`, `["readonly", "readonly"]`, `commands[1].flags[1]: found "readonly" again`},
		{`["readonly"]`, `["readonly", "write"]`, `commands[1].flags: found "readonly", "write", wanted either`},
		{`["readonly"]`, `[]`, `commands[1].flags: found none, wanted either "write" or "readonly"`},
		{`{"first": 1, "last": 1, "step": 1}`, `{"first": 3, "last": 3, "step": 1}`, `commands[0].keys.first: found 3, wanted less than 3`},
		{`{"first": 1, "last": 1, "step": 1}`, `{"first": 2, "last": 1, "step": 1}`, `commands[0].keys.last: found 1, wanted an argument not before the first key, 2`},
		{`{"first": 1, "last": 1, "step": 1}`, `{"first": 1, "last": 3, "step": 1}`, `commands[0].keys.last: found 3, wanted less than 3`},
		{`{"first": 1, "last": 1, "step": 1}`, `{"first": 1, "last": -3, "step": 1}`, `commands[0].keys.last: found -3`},
		{`{"first": 1, "last": 1, "step": 1}`, `{"first": 1, "last": 1, "step": 0}`, `commands[0].keys.step: found 0`},
		{`{"first": 1, "last": 1, "step": 1}`, `{"first": 1, "last": 1}`, `commands[0].keys.step: found nothing`},
		{`"acl": ["string"]`, `"acl": ["@string"]`, `commands[0].acl[0]: found "@string", wanted one of "keyspace"`},
		{`"Deletes a string."`, `""`, `commands[0].summary: found 0 bytes, wanted 1 to 256`},
		{`"Deletes a string."`, `"a\nb"`, `commands[0].summary: found "a\nb", wanted no control characters`},
		{`"since": "1.0.0"`, `"since": "soon"`, `commands[0].since: found "soon"`},
		{`"read": [""]`, `"read": ""`, `capabilities.read: found the string "", wanted a list`},
		{`"write": ["lock:"]`, `"write": [1]`, `capabilities.write[0]: found the number 1`},
		{`"timers": true`, `"timers": "yes"`, `capabilities.timers: found the string "yes", wanted true or false`},
		{`["expired"]`, `["gone"]`, `capabilities.events[0]: found "gone"`},
		{`["get"]`, `["get x"]`, `capabilities.commands[0]: found "get x"`},
		{`"fuel": 1000000`, `"fuel": 0`, `limits.fuel: found 0, wanted a whole number from 1`},
		{`"memory_pages": 4`, `"memory_pages": 65537`, `limits.memory_pages: found 65537`},
		{`"timers"`, `"files"`, `capabilities.files: found an unknown field, wanted one of "read", "write", "commands", "timers", "events", "state", "block", "clients"`},
		{`"acl"`, `"acls"`, `"summary", "since", "state", "group", "keys"`},
		{`"type": "int",`, `"type": "int", "most": 1,`, `config[0].most: found an unknown field, wanted one of "name", "type", "default", "immutable", "min", "max", "summary"`},
		{`"memory_pages"`, `"memory"`, `limits.memory: found an unknown field`},
		{`"type": "int"`, `"type": "float"`, `config[0].type: found "float", wanted one of "string", "int", "bool"`},
		{`-30000`, `"30000"`, `config[0].default: found the string "30000", wanted a whole number`},
		{`"name": "prefix"`, `"name": "ttl"`, `config[1].name: found "ttl", wanted a name of its own`},
		{`"default": true`, `"default": 1`, `config[2].default: found the number 1, wanted true or false`},
		{full, `[]`, `document: found a list, wanted an object`},
		{full, ``, `document: found EOF`},
		{full, full + "{}", `document: found more after the end`},
		{full, full[:40], `found EOF at byte 39, wanted JSON`},
		{full, strings.Repeat("[", 60_000), `found more than 8 levels`},
		{full, strings.Repeat(" ", MaxBytes+1), `found 65537 bytes, wanted at most 65536`},
		{full, "{\"name\": \"\xff\"}", `not UTF-8`},
		{full, `{"name": "x", "version": "1.0.0", "abi": {"min": 1, "max": 1}}`, `commands: found none, wanted at least one`},
	} {
		doc := strings.Replace(full, c.old, c.new, 1)
		if doc == full {
			t.Fatalf("%s is not in the document", c.old)
		}
		_, err := Parse([]byte(doc))
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60s: got %v; want %s", c.new, err, c.want)
		}
	}
}

// plain is a module with a type section between two custom ones.
const plain = "\x00asm\x01\x00\x00\x00" + "\x00\x03\x01ab" + "\x01\x04\x01\x60\x00\x00" + "\x00\x02\x01z"

func TestPackAndRead(t *testing.T) {
	if _, err := Read([]byte(plain)); !errors.Is(err, ErrMissing) {
		t.Errorf("a module without manifest: %v, want %v", err, ErrMissing)
	}
	packed, err := Pack([]byte(plain), []byte(full))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(packed, []byte(plain)) {
		t.Error("the module itself was changed")
	}
	m, err := Read(packed)
	if err != nil || m.Name != "cad" {
		t.Fatalf("read %+v, %v", m, err)
	}
	doc, err := Document(packed)
	if err != nil || bytes.ContainsAny(doc, "\n") {
		t.Errorf("the manifest was not compacted (%v): %q", err, doc)
	}
	again, err := Pack(packed, []byte(full))
	if err != nil || !bytes.Equal(again, packed) {
		t.Errorf("packing again changes the module (%v)", err)
	}
	other := strings.Replace(full, `"cad"`, `"other"`, 1)
	replaced, err := Pack(append(packed, "\x00\x02\x01y"...), []byte(other))
	if err != nil {
		t.Fatal(err)
	}
	if m, err := Read(replaced); err != nil || m.Name != "other" {
		t.Errorf("after replacing: %+v, %v", m, err)
	}
	if !bytes.HasPrefix(replaced, []byte(plain+"\x00\x02\x01y")) {
		t.Error("what stood around the old manifest was changed")
	}
	if _, err := Pack([]byte(plain), []byte(`{}`)); err == nil {
		t.Error("an empty manifest was packed")
	}
}

func TestReadRefuses(t *testing.T) {
	section := func(content string) string {
		body := string(appendU32(nil, uint32(len(SectionName)))) + SectionName + content
		return "\x00" + string(appendU32(nil, uint32(len(body)))) + body
	}
	for _, c := range []struct{ module, want string }{
		{"", "not a WebAssembly module"},
		{"MZ", "not a WebAssembly module"},
		{plain + "\x00", "longer than the module"},
		{plain + "\x00\x80", "longer than the module"},
		{plain + "\x00\x05\x01a", "section at offset 23 is longer than the module"},
		{plain + "\x00\xff\xff\xff\xff\x0f", "longer than the module"},
		{plain + "\x00\xff\xff\xff\xff\xff\x01", "longer than the module"},
		{plain + "\x00\x02\x05a", "custom section at offset 23 ends within its name"},
		{plain + section(full) + section(full), "two custom sections latchkey.manifest"},
		{plain + section(strings.Repeat(" ", MaxBytes+1)), "found 65537 bytes, wanted at most 65536"},
		{plain + section("{"), "found EOF at byte 1, wanted JSON"},
	} {
		if _, err := Read([]byte(c.module)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.40q: got %v; want %s", c.module, err, c.want)
		}
	}
}

func FuzzRead(f *testing.F) {
	packed, err := Pack([]byte(plain), []byte(full))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(packed)
	f.Add([]byte(plain))
	f.Fuzz(func(t *testing.T, module []byte) {
		m, err := Read(module)
		if err != nil {
			return
		}
		doc, err := Document(module)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Pack(module, doc)
		if err != nil {
			t.Fatalf("read, but not packed: %v", err)
		}
		n, err := Read(again)
		if err != nil || fmt.Sprintf("%+v", n.Capabilities) != fmt.Sprintf("%+v", m.Capabilities) || n.Name != m.Name {
			t.Fatalf("packed again: %v, %+v", err, n)
		}
	})
}
