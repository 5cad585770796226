package cad

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/latchkey-proxy/latchkey/plugins/fuel"
	"github.com/latchkey-proxy/latchkey/plugins/manifest"
)

var modules = []string{"wat/cad.wasm"}

// keyspace answers the host functions that the plugin calls.
type keyspace struct {
	keys    map[string]string
	args    []string // of the command
	err     int32    // answered by cad_args in place of a result, if negative
	replies []int64
	refills int
}

// instance is the plugin, instrumented as the server would run it.
type instance struct {
	api.Module
	host    *keyspace
	command api.Function
	arena   uint32
	room    uint32
}

func instantiate(t testing.TB, file string, host *keyspace) *instance {
	t.Helper()
	wasm, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Read(wasm)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	wasm, err = fuel.Instrument(wasm, fuel.Options{MemoryPages: uint32(m.Limits.MemoryPages)})
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler().WithMemoryLimitPages(uint32(m.Limits.MemoryPages)))
	t.Cleanup(func() { rt.Close(ctx) })

	const i32, i64 = api.ValueTypeI32, api.ValueTypeI64
	_, err = rt.NewHostModuleBuilder(fuel.HostModule).NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(func(_ context.Context, _ api.Module, stack []uint64) {
			if int64(stack[0]) == fuel.DepthExceeded {
				panic("calls nested too deep")
			}
			host.refills++
			stack[0] += uint64(m.Limits.Fuel)
		}), []api.ValueType{i64}, []api.ValueType{i64}).Export(fuel.RefillName).Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	_, err = rt.NewHostModuleBuilder("latchkey_v1").
		NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(host.cadArgs), []api.ValueType{i32, i32}, []api.ValueType{i32}).Export("cad_args").
		NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(host.replyInt), []api.ValueType{i64}, nil).Export("reply_int").
		Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	mod, err := rt.Instantiate(ctx, wasm)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	in := &instance{Module: mod, host: host, command: mod.ExportedFunction("lk_command")}
	if got := in.call(t, "lk_abi"); got != 1 {
		t.Fatalf("%s: lk_abi() = %d, want 1", file, got)
	}
	if got := in.call(t, "lk_init"); got != 0 {
		t.Fatalf("%s: lk_init() = %d, want 0", file, got)
	}
	return in
}

func (k *keyspace) cadArgs(_ context.Context, _ api.Module, stack []uint64) {
	key, value := k.args[uint32(stack[0])], k.args[uint32(stack[1])]
	result := int32(-1)
	if held, found := k.keys[key]; k.err != 0 {
		result = k.err
	} else if found {
		result = 0
		if held == value {
			delete(k.keys, key)
			result = 1
		}
	}
	stack[0] = api.EncodeI32(result)
}

func (k *keyspace) replyInt(_ context.Context, _ api.Module, stack []uint64) {
	k.replies = append(k.replies, int64(stack[0]))
}

func (in *instance) call(t testing.TB, name string, args ...uint64) int32 {
	t.Helper()
	out, err := in.ExportedFunction(name).Call(context.Background(), args...)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return api.DecodeI32(out[0])
}

// frame writes a command's frame, as the server does, and returns its address.
func (in *instance) frame(t testing.TB, args ...string) uint32 {
	t.Helper()
	in.host.args = args
	size := 16 + 8*len(args)
	for _, a := range args {
		size += len(a)
	}
	if uint32(size) > in.room {
		in.arena = uint32(in.call(t, "lk_arena", uint64(size)))
		if in.arena == 0 {
			return 0
		}
		in.room = uint32(size)
	}
	if in.arena%8 != 0 {
		t.Fatalf("lk_arena(%d) = %d, which is not aligned to 8", size, in.arena)
	}
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(args)))
	for _, n := range []uint32{1, 1, 0} { // one key, the first argument after the name
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	at := in.arena + 16 + uint32(8*len(args))
	for _, a := range args {
		b = binary.LittleEndian.AppendUint32(b, at)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(a)))
		at += uint32(len(a))
	}
	for _, a := range args {
		b = append(b, a...)
	}
	if !in.Memory().Write(in.arena, b) {
		t.Fatalf("lk_arena(%d) = %d, but memory ends at %d", size, in.arena, in.Memory().Size())
	}
	return in.arena
}

func (in *instance) run(t testing.TB, args ...string) int32 {
	t.Helper()
	return in.call(t, "lk_command", 1, uint64(len(args)), uint64(in.frame(t, args...)))
}

func TestCommand(t *testing.T) {
	for _, file := range modules {
		host := &keyspace{keys: map[string]string{"lock": "token", "": "", "bin\x00ary": "\xff\x00"}}
		in := instantiate(t, file, host)
		large := string(bytes.Repeat([]byte("x"), 300_000))
		host.keys["large"] = large
		for _, c := range []struct {
			key, value string
			want       int64
		}{
			{"lock", "other", 0},
			{"lock", "token", 1},
			{"lock", "token", -1},
			{"", "", 1},
			{"", "", -1},
			{"bin\x00ary", "\xff", 0},
			{"bin\x00ary", "\xff\x00", 1},
			{"large", large, 1},
		} {
			host.replies = nil
			if got := in.run(t, "CAD.WASM", c.key, c.value); got != 0 {
				t.Errorf("%s: CAD.WASM %q returned %d, want 0", file, c.key, got)
			}
			if len(host.replies) != 1 || host.replies[0] != c.want {
				t.Errorf("%s: CAD.WASM %q %.20q replied %v, want %d", file, c.key, c.value, host.replies, c.want)
			}
		}
		// An error of the host goes back to it, without a reply.
		host.replies, host.err = nil, -100
		if got := in.run(t, "CAD.WASM", "lock", "token"); got != -100 || len(host.replies) != 0 {
			t.Errorf("%s: on a wrong type it returned %d and replied %v, want -100 and nothing", file, got, host.replies)
		}
		// More than the memory limit allows.
		in.room = 0
		if got := in.frame(t, "CAD.WASM", string(make([]byte, 5<<20)), ""); got != 0 {
			t.Errorf("%s: lk_arena of 5 MB in 4 MiB of memory = %d, want 0", file, got)
		}
	}
}

func TestManifests(t *testing.T) {
	document, err := os.ReadFile("wat/manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	want, err := manifest.Parse(document)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range modules {
		wasm, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		got, err := manifest.Read(wasm)
		if err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: its manifest is not manifest.json (-want +got):\n%s", file, d)
		}
	}
}

// A million commands must not take more memory than the first.
func TestMemoryIsFlat(t *testing.T) {
	for _, file := range modules {
		host := &keyspace{keys: map[string]string{"lock": "token"}}
		in := instantiate(t, file, host)
		frame := uint64(in.frame(t, "CAD.WASM", "lock", "other"))
		before := in.Memory().Size()
		var stack [3]uint64
		for range 1_000_000 {
			stack = [3]uint64{1, 3, frame}
			if err := in.command.CallWithStack(context.Background(), stack[:]); err != nil {
				t.Fatal(err)
			}
			if host.replies[0] != 0 {
				t.Fatalf("%s: replied %d", file, host.replies[0])
			}
			host.replies = host.replies[:0]
		}
		if after := in.Memory().Size(); after != before {
			t.Errorf("%s: memory grew from %d to %d bytes", file, before, after)
		}
		if host.refills == 0 {
			t.Errorf("%s: no fuel was asked for", file)
		}
	}
}

func BenchmarkCommand(b *testing.B) {
	for _, file := range modules {
		b.Run(file, func(b *testing.B) {
			host := &keyspace{keys: map[string]string{"lock": "token"}}
			in := instantiate(b, file, host)
			frame := uint64(in.frame(b, "CAD.WASM", "lock", "other"))
			var stack [3]uint64
			b.ReportAllocs()
			for b.Loop() {
				stack = [3]uint64{1, 3, frame}
				if err := in.command.CallWithStack(context.Background(), stack[:]); err != nil {
					b.Fatal(err)
				}
				host.replies = host.replies[:0]
			}
		})
	}
}
