package plugins

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/tetratelabs/wazero/api"
)

// wasiModule is the import module of WASI preview 1, which toolchains such as
// Go's cannot do without. Here there are no files, no network, no environment
// and no arguments; what a guest prints goes to the server's log.
const wasiModule = "wasi_snapshot_preview1"

// Errors of WASI.
const (
	wasiOK      = 0
	wasiBadFile = 8
	wasiInvalid = 28
	wasiNoSys   = 52
)

// maxPolled bounds what one poll_oneoff waits for.
const maxPolled = 64

// wasiFunctions are those that a guest may import; those without a call fail
// with the error "not supported" or "bad file descriptor".
var wasiFunctions = map[string]*hostFunc{
	"args_get":          wasi(wasiEmpty, i32, i32),
	"args_sizes_get":    wasi(wasiSizes, i32, i32),
	"environ_get":       wasi(wasiEmpty, i32, i32),
	"environ_sizes_get": wasi(wasiSizes, i32, i32),
	"clock_res_get":     wasi(wasiResolution, i32, i32),
	"clock_time_get":    wasi(wasiTime, i32, i64, i32),
	"fd_fdstat_get":     wasi(wasiStat, i32, i32),
	"fd_write":          wasi(wasiWrite, i32, i32, i32, i32),
	"fd_read":           wasi(wasiRead, i32, i32, i32, i32),
	"poll_oneoff":       wasi(wasiPoll, i32, i32, i32, i32),
	"proc_exit":         {params: types(i32), call: wasiExit},
	"random_get":        wasi(wasiRandom, i32, i32),
	"sched_yield":       wasi(wasiEmpty),

	"fd_fdstat_set_flags": wasi(wasiFile, i32, i32),

	"fd_advise":               wasi(wasiNoFile, i32, i64, i64, i32),
	"fd_allocate":             wasi(wasiNoFile, i32, i64, i64),
	"fd_close":                wasi(wasiNoFile, i32),
	"fd_datasync":             wasi(wasiNoFile, i32),
	"fd_fdstat_set_rights":    wasi(wasiNoFile, i32, i64, i64),
	"fd_filestat_get":         wasi(wasiNoFile, i32, i32),
	"fd_filestat_set_size":    wasi(wasiNoFile, i32, i64),
	"fd_filestat_set_times":   wasi(wasiNoFile, i32, i64, i64, i32),
	"fd_pread":                wasi(wasiNoFile, i32, i32, i32, i64, i32),
	"fd_prestat_dir_name":     wasi(wasiNoFile, i32, i32, i32),
	"fd_prestat_get":          wasi(wasiNoFile, i32, i32),
	"fd_pwrite":               wasi(wasiNoFile, i32, i32, i32, i64, i32),
	"fd_readdir":              wasi(wasiNoFile, i32, i32, i32, i64, i32),
	"fd_renumber":             wasi(wasiNoFile, i32, i32),
	"fd_seek":                 wasi(wasiNoFile, i32, i64, i32, i32),
	"fd_sync":                 wasi(wasiNoFile, i32),
	"fd_tell":                 wasi(wasiNoFile, i32, i32),
	"path_create_directory":   wasi(wasiNoFile, i32, i32, i32),
	"path_filestat_get":       wasi(wasiNoFile, i32, i32, i32, i32, i32),
	"path_filestat_set_times": wasi(wasiNoFile, i32, i32, i32, i32, i64, i64, i32),
	"path_link":               wasi(wasiNoFile, i32, i32, i32, i32, i32, i32, i32),
	"path_open":               wasi(wasiNoFile, i32, i32, i32, i32, i32, i64, i64, i32, i32),
	"path_readlink":           wasi(wasiNoFile, i32, i32, i32, i32, i32, i32),
	"path_remove_directory":   wasi(wasiNoFile, i32, i32, i32),
	"path_rename":             wasi(wasiNoFile, i32, i32, i32, i32, i32, i32),
	"path_symlink":            wasi(wasiNoFile, i32, i32, i32, i32, i32),
	"path_unlink_file":        wasi(wasiNoFile, i32, i32, i32),
	"proc_raise":              wasi(wasiNoSystem, i32),
	"sock_accept":             wasi(wasiNoFile, i32, i32, i32),
	"sock_recv":               wasi(wasiNoFile, i32, i32, i32, i32, i32, i32),
	"sock_send":               wasi(wasiNoFile, i32, i32, i32, i32, i32),
	"sock_shutdown":           wasi(wasiNoFile, i32, i32),
}

// wasi is a function that returns an error number.
func wasi(call func(in *instance, stack []uint64) uint32, params ...api.ValueType) *hostFunc {
	return &hostFunc{params: params, results: types(i32), call: func(in *instance, stack []uint64) {
		stack[0] = uint64(call(in, stack))
	}}
}

func wasiEmpty(*instance, []uint64) uint32    { return wasiOK }
func wasiNoFile(*instance, []uint64) uint32   { return wasiBadFile }
func wasiNoSystem(*instance, []uint64) uint32 { return wasiNoSys }

// wasiFile answers for what concerns one of the three standard files.
func wasiFile(_ *instance, stack []uint64) uint32 {
	if uint32(stack[0]) > 2 {
		return wasiBadFile
	}
	return wasiOK
}

// wasiSizes says that there are no arguments and no environment.
func wasiSizes(in *instance, stack []uint64) uint32 {
	clear(in.bytes(stack[0], 4))
	clear(in.bytes(stack[1], 4))
	return wasiOK
}

func wasiStat(in *instance, stack []uint64) uint32 {
	if uint32(stack[0]) > 2 {
		return wasiBadFile
	}
	b := in.bytes(stack[1], 24)
	clear(b)
	b[0] = 2 // a terminal: written to as it comes
	return wasiOK
}

func wasiExit(_ *instance, stack []uint64) {
	panic(&trap{fmt.Sprintf("the guest has exited with code %d", uint32(stack[0]))})
}

func wasiRandom(in *instance, stack []uint64) uint32 {
	in.random(in.bytes(stack[0], stack[1]))
	return wasiOK
}

func wasiRead(in *instance, stack []uint64) uint32 {
	if uint32(stack[0]) != 0 {
		return wasiBadFile
	}
	clear(in.bytes(stack[3], 4)) // the end
	return wasiOK
}

// wasiWrite takes what the guest prints: to standard output for the log's level
// info, to standard error for warning.
func wasiWrite(in *instance, stack []uint64) uint32 {
	level := slog.LevelInfo
	switch uint32(stack[0]) {
	case 1:
	case 2:
		level = slog.LevelWarn
	default:
		return wasiBadFile
	}
	if uint32(stack[2]) > maxPieces {
		return wasiInvalid
	}
	pieces := in.bytes(stack[1], uint64(uint32(stack[2]))*8)
	written := in.bytes(stack[3], 4)
	total := uint64(0)
	for ; len(pieces) > 0; pieces = pieces[8:] {
		at, n := binary.LittleEndian.Uint32(pieces), binary.LittleEndian.Uint32(pieces[4:])
		in.print(level, in.bytes(uint64(at), uint64(n)))
		total += uint64(n)
	}
	if total > math.MaxUint32 {
		return wasiInvalid
	}
	binary.LittleEndian.PutUint32(written, uint32(total))
	return wasiOK
}

// maxPieces bounds the pieces of one fd_write.
const maxPieces = 1024

// print logs whole lines and keeps what is left of the last one, as much as a
// line of the log may have.
func (in *instance) print(level slog.Level, text []byte) {
	for len(text) > 0 {
		line, rest, whole := bytes.Cut(text, []byte{'\n'})
		in.line = append(in.line, line[:min(len(line), maxLogLine-min(len(in.line), maxLogLine))]...)
		if !whole {
			return
		}
		in.flushLine(level)
		text = rest
	}
}

func (in *instance) flushLine(level slog.Level) {
	if len(in.line) > 0 {
		in.log(level, in.line)
		in.line = in.line[:0]
	}
}

// monotonic is the guest's own clock, in ns: it stands still but for its sleeps,
// which take no time.
func (in *instance) monotonic() uint64 {
	in.slept++ // no two readings are the same
	return in.slept
}

func (in *instance) wallNanos() uint64 {
	if in.call != nil {
		return uint64(in.call.Tx.Now()) * uint64(time.Millisecond)
	}
	return uint64(time.Now().UnixNano())
}

func wasiTime(in *instance, stack []uint64) uint32 {
	out := in.bytes(stack[2], 8)
	switch uint32(stack[0]) {
	case 0:
		binary.LittleEndian.PutUint64(out, in.wallNanos())
	case 1:
		binary.LittleEndian.PutUint64(out, in.monotonic())
	default:
		return wasiInvalid
	}
	return wasiOK
}

func wasiResolution(in *instance, stack []uint64) uint32 {
	out := in.bytes(stack[1], 8)
	switch uint32(stack[0]) {
	case 0:
		binary.LittleEndian.PutUint64(out, uint64(time.Millisecond))
	case 1:
		binary.LittleEndian.PutUint64(out, 1)
	default:
		return wasiInvalid
	}
	return wasiOK
}

// wasiPoll lets the guest sleep, which moves its clock and takes no time: others
// wait for the keys of its call. No file is ever ready.
func wasiPoll(in *instance, stack []uint64) uint32 {
	const (
		subscription, event = 48, 32
		onClock             = 0
		absolute            = 1
	)
	n := uint64(uint32(stack[2]))
	if n == 0 || n > maxPolled {
		return wasiInvalid
	}
	subs, events, count := in.bytes(stack[0], n*subscription), in.bytes(stack[1], n*event), in.bytes(stack[3], 4)
	delays := make([]uint64, n)
	least := uint64(math.MaxUint64)
	for i := range delays {
		s := subs[i*subscription:]
		if s[8] != onClock {
			delays[i], least = 0, 0 // an error, at once
			continue
		}
		d := binary.LittleEndian.Uint64(s[24:])
		if binary.LittleEndian.Uint16(s[40:])&absolute != 0 {
			now := in.slept
			if binary.LittleEndian.Uint32(s[16:]) == 0 {
				now = in.wallNanos()
			}
			d -= min(d, now)
		}
		delays[i] = d
		least = min(least, d)
	}
	in.slept += min(least, math.MaxInt64-min(in.slept, math.MaxInt64))
	ready := uint32(0)
	for i, d := range delays {
		if d > least {
			continue
		}
		s := subs[i*subscription:]
		var e [event]byte
		copy(e[:8], s[:8]) // whose it is
		if e[10] = s[8]; s[8] != onClock {
			binary.LittleEndian.PutUint16(e[8:], wasiBadFile)
		}
		copy(events[ready*event:], e[:])
		ready++
	}
	binary.LittleEndian.PutUint32(count, ready)
	return wasiOK
}
