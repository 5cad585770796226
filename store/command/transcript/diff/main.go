// Diff replays the transcripts on redis-server and on latchkey, in RESP2 and in
// RESP3, and tells where they differ.
//
//	go run ./store/command/transcript/diff -redis redis-server -latchkey bin/latchkey [file.transcript ...]
//	go run ./store/command/transcript/diff -record [file.transcript ...]
//
// It exits with 1 when redis-server does not give the replies that stand in a
// transcript, when latchkey does not and docs/COMPATIBILITY.md does not say
// why, and when that page names a difference that is none any more. With
// -record it writes the replies of redis-server into the transcripts instead.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"text/tabwriter"

	"github.com/latchkey-proxy/latchkey/store/command/transcript"
)

var errDiffer = errors.New("they differ")

func main() {
	redis := flag.String("redis", "redis-server", "the redis-server that judges, version 7.0")
	latchkey := flag.String("latchkey", "", "the latchkey to compare; without it, only redis-server is asked")
	known := flag.String("known", "docs/COMPATIBILITY.md", "the page that lists the known differences")
	record := flag.Bool("record", false, "write redis-server's replies into the transcripts")
	later := flag.Bool("later", false, "the redis-server is a later one than 7.0: play the sections marked only on it too")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, *redis, *latchkey, *known, *record, *later, flag.Args())
	switch {
	case errors.Is(err, errDiffer):
		os.Exit(1)
	case err != nil:
		fmt.Fprintf(os.Stderr, "diff: error: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, redis, latchkey, known string, record, later bool, paths []string) error {
	all := len(paths) == 0
	if all {
		for _, glob := range []string{"store/command/testdata/*.transcript", "proxy/testdata/*.transcript"} {
			found, err := filepath.Glob(glob)
			if err != nil {
				return err
			}
			paths = append(paths, found...)
		}
	}
	if len(paths) == 0 {
		return errors.New("no transcripts found; run from the root of the repository, or name the files")
	}
	var files []*transcript.File
	for _, path := range paths {
		f, err := transcript.Open(path)
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	judge, err := transcript.StartServer(ctx, redis)
	if err != nil {
		return err
	}
	defer judge.Stop()
	target := judge.Target()
	target.Later = later
	if record {
		return recordAll(ctx, target, files)
	}

	unexpected := 0
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Println("redis-server")
	unexpected += compare(ctx, w, target, files, &transcript.KnownDifferences{})
	if latchkey != "" {
		rows, err := transcript.OpenKnown(known)
		if err != nil {
			return err
		}
		ours, err := transcript.StartServer(ctx, latchkey)
		if err != nil {
			return err
		}
		defer ours.Stop()
		target := ours.Target()
		target.Later = true // latchkey answers as Redis 7.2, and knows the dialects
		fmt.Println("\nlatchkey")
		unexpected += compare(ctx, w, target, files, rows)
		if all {
			for _, row := range rows.Stale() {
				unexpected++
				fmt.Printf("%s:%d: listed, but not different: %s / %s / %s\n", rows.Path, row.Line, row.Family, row.Section, row.Command)
			}
		}
	}
	if unexpected > 0 {
		return errDiffer
	}
	return nil
}

func recordAll(ctx context.Context, target transcript.Target, files []*transcript.File) error {
	var failed error
	for _, f := range files {
		if err := transcript.Record(ctx, target, f); err != nil {
			failed = errors.Join(failed, err)
		}
		old, err := os.ReadFile(f.Path)
		if err != nil {
			return err
		}
		if bytes.Equal(old, f.Bytes()) {
			continue
		}
		if err := os.WriteFile(f.Path, f.Bytes(), 0o644); err != nil {
			return err
		}
		fmt.Printf("recorded %s, %d commands\n", f.Path, f.Commands())
	}
	return failed
}

// compare replays all files on one target, prints a row for each, then the
// differences and what was skipped, and returns how many were unexpected.
func compare(ctx context.Context, w *tabwriter.Writer, target transcript.Target, files []*transcript.File, known *transcript.KnownDifferences) int {
	var sum row
	var unexpected []string
	skipped := map[string]int{}
	fmt.Fprintln(w, "family\tcommands\tequal\tknown\tunexpected\tskipped\t")
	for _, f := range files {
		r := row{family: f.Family()}
		for _, proto := range []int{2, 3} {
			res, err := transcript.Play(ctx, target, f, proto)
			for reason, n := range res.Skipped {
				skipped[reason] += n
				r.skipped += n
			}
			r.commands += res.Commands
			r.equal += res.Equal
			for _, d := range res.Differences {
				if known.Lists(d) {
					r.known++
					continue
				}
				r.unexpected++
				unexpected = append(unexpected, d.String())
			}
			if err != nil {
				r.unexpected++
				unexpected = append(unexpected, fmt.Sprintf("RESP%d: %v\n", proto, err))
			}
		}
		r.print(w)
		sum.add(r)
	}
	sum.family = "all"
	sum.print(w)
	w.Flush()
	for _, reason := range slices.Sorted(maps.Keys(skipped)) {
		fmt.Printf("skipped, %s: %d\n", reason, skipped[reason])
	}
	for _, d := range unexpected {
		fmt.Print("\n", d)
	}
	return sum.unexpected
}

// row counts the commands of a family, in both protocols together.
type row struct {
	family                                      string
	commands, equal, known, unexpected, skipped int
}

func (r *row) add(o row) {
	r.commands += o.commands
	r.equal += o.equal
	r.known += o.known
	r.unexpected += o.unexpected
	r.skipped += o.skipped
}

func (r row) print(w *tabwriter.Writer) {
	fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t\n", r.family, r.commands, r.equal, r.known, r.unexpected, r.skipped)
}
