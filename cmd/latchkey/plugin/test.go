package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/latchkey-proxy/latchkey/plugins"
	"github.com/latchkey-proxy/latchkey/store/command/transcript"
)

// maxTest is how long all transcripts may take together.
const maxTest = 10 * time.Minute

// test replays transcripts on a server that has loaded the module.
func (p Program) test(args []string, stdout, stderr io.Writer) int {
	update := false
	words, err := options(args, false, nil, map[string]*bool{"--update": &update})
	if err != nil {
		return usageError(stderr, err.Error())
	}
	if len(words) < 2 {
		return usageError(stderr, "test takes a module and the transcripts to replay")
	}
	module, err := filepath.Abs(words[0])
	if err != nil {
		return failed(stderr, err)
	}
	if _, err := os.Stat(module); err != nil {
		return failed(stderr, err)
	}
	addr, stop, err := p.Serve([]string{
		"--bind", "127.0.0.1", "--port", "0", "--save", "", "--loglevel", "warning", "--enable-debug-command", "yes", "--loadmodule", module,
	}, stderr)
	if err != nil {
		return failed(stderr, err)
	}
	defer stop()
	ctx, cancel := context.WithTimeout(context.Background(), maxTest)
	defer cancel()
	code, commands, different := exitOK, 0, 0
	for _, path := range words[1:] {
		f, err := openTranscript(path)
		if err != nil {
			return failed(stderr, err)
		}
		if update {
			if err := transcript.Record(ctx, transcript.TCP(addr), f); err != nil {
				return failed(stderr, err)
			}
			if err := os.WriteFile(path, f.Bytes(), 0o644); err != nil {
				return failed(stderr, err)
			}
			if f, err = openTranscript(path); err != nil {
				return failed(stderr, err)
			}
		}
		for _, proto := range []int{2, 3} {
			res, err := transcript.Play(ctx, transcript.TCP(addr), f, proto)
			if err != nil {
				return failed(stderr, fmt.Errorf("%s in RESP%d: %w", path, proto, err))
			}
			commands += res.Commands
			different += len(res.Differences)
			for _, d := range res.Differences {
				fmt.Fprintln(stdout, d)
			}
		}
	}
	if different > 0 {
		code = exitFailed
	}
	fmt.Fprintf(stdout, "%d commands in RESP2 and RESP3, %d of them answered otherwise than written\n", commands, different)
	if commands == 0 {
		return failed(stderr, errors.New("the transcripts hold no commands"))
	}
	return code
}

// maxTranscript is how large a transcript's file may be, in bytes.
const maxTranscript = 64 << 20

func openTranscript(path string) (*transcript.File, error) {
	text, err := plugins.ReadFile(path, maxTranscript)
	if err != nil {
		return nil, err
	}
	return transcript.Parse(path, text)
}
