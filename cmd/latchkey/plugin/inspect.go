package plugin

import (
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/latchkey-proxy/latchkey/plugins"
	"github.com/latchkey-proxy/latchkey/plugins/manifest"
)

// defaultPages is plugin-max-memory-pages where nobody has set it.
const defaultPages = 256

// inspect says what a module is and asks for: that is read, and none of its code runs.
// Whether it would load is tried afterwards with the server's own checks, the last of which
// has lk_init run.
func (p Program) inspect(args []string, stdout, stderr io.Writer) int {
	if len(args) != 1 {
		return usageError(stderr, "inspect takes one module")
	}
	path := args[0]
	host, end, err := newHost()
	if err != nil {
		return failed(stderr, err)
	}
	defer end()
	wasm, err := host.Read(path)
	if err != nil {
		return failed(stderr, err)
	}
	man, err := manifest.Read(wasm)
	if err != nil {
		return failed(stderr, fmt.Errorf("%s: %w", path, err))
	}
	describe(stdout, path, wasm, man)
	commands, err := p.Commands()
	if err != nil {
		return failed(stderr, err)
	}
	if err := host.Check(commands, plugins.Loading{Path: path}); err != nil {
		fmt.Fprintf(stdout, "loads         no: %v\n", err)
		return exitFailed
	}
	fmt.Fprintln(stdout, "loads         yes")
	return exitOK
}

// newHost is a host for somebody else's module, which is compiled as a server would, in a
// process with limits; end closes it.
func newHost() (host *plugins.Host, end func(), err error) {
	cache, err := os.MkdirTemp("", "latchkey-plugin-")
	if err != nil {
		return nil, nil, err
	}
	host, err = plugins.New(plugins.Options{Log: slog.New(slog.DiscardHandler), CacheDir: cache, Compile: Child(defaultPages)})
	if err != nil {
		os.RemoveAll(cache)
		return nil, nil, err
	}
	return host, func() {
		host.Close()
		os.RemoveAll(cache)
	}, nil
}

func describe(out io.Writer, path string, wasm []byte, man *manifest.Manifest) {
	fmt.Fprintf(out, "module        %s %s\n", man.Name, man.Version)
	fmt.Fprintf(out, "file          %s, %d bytes, instrumented %s\n", path, len(wasm), instrumented(wasm, man))
	fmt.Fprintf(out, "sha256        %x\n", sha256.Sum256(wasm))
	fmt.Fprintf(out, "abi           %s\n", span(man.ABI.Min, man.ABI.Max))
	c := man.Capabilities
	fmt.Fprintf(out, "reads         %s\n", plugins.Prefixes(c.Read))
	fmt.Fprintf(out, "writes        %s\n", plugins.Prefixes(c.Write))
	fmt.Fprintf(out, "calls         %s\n", listed(c.Commands, "no commands"))
	fmt.Fprintf(out, "events        %s\n", listed(c.Events, "none"))
	fmt.Fprintf(out, "timers        %s\n", yesNo(c.Timers))
	fmt.Fprintf(out, "state         %s\n", c.State)
	fmt.Fprintf(out, "block         %s\n", yesNo(c.Block))
	fmt.Fprintf(out, "clients       %s\n", yesNo(c.Clients))
	fmt.Fprintf(out, "limits        fuel %s, memory %s, instances %s\n", orServer(man.Limits.Fuel, " units a call"),
		orServer(int64(man.Limits.MemoryPages), " pages of 64 KiB"), orServer(int64(man.Limits.Instances), ""))
	for i, p := range man.Config {
		fmt.Fprintf(out, "%-13s %s.%s %s, default %q  %s\n", first(i, "configuration"), man.Name, p.Name, p.Type, p.Default, p.Summary)
	}
	fmt.Fprintln(out, "commands")
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, cmd := range man.Commands {
		keys := "no keys"
		if k := cmd.Keys; k != nil {
			keys = fmt.Sprintf("keys %d to %d, step %d", k.First, k.Last, k.Step)
		}
		arity := fmt.Sprintf("%d words", cmd.Arity)
		if cmd.Arity < 0 {
			arity = fmt.Sprintf("%d words or more", -cmd.Arity)
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%s\n", strings.ToUpper(cmd.Name), arity, keys, strings.Join(cmd.Flags, " "), cmd.Summary)
	}
	w.Flush()
}

func instrumented(wasm []byte, man *manifest.Manifest) string {
	n, err := plugins.InstrumentedSize(wasm, man)
	if err != nil {
		return "not possible"
	}
	return strconv.Itoa(n)
}

func first(i int, label string) string {
	if i == 0 {
		return label
	}
	return ""
}

func span(low, high int) string {
	if low == high {
		return strconv.Itoa(low)
	}
	return fmt.Sprintf("%d to %d", low, high)
}

func listed(words []string, none string) string {
	if len(words) == 0 {
		return none
	}
	return strings.Join(words, " ")
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// orServer is a limit of the manifest, or who sets it.
func orServer(n int64, unit string) string {
	if n == 0 {
		return "as the server allows"
	}
	return strconv.FormatInt(n, 10) + unit
}
