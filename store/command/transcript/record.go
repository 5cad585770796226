package transcript

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Record plays f on the target in both protocols and puts the replies it gets
// into f; [File.Bytes] is the new transcript. A reply that matches what stands
// there already is left alone, so matchers stay. One that does not match, where
// a matcher stands, is left alone too and named in the error: only its author
// knows what varies. Sections that the target skips are left as they are.
func Record(ctx context.Context, target Target, f *File) error {
	two := map[*step][]frame{}
	three := map[*step][]frame{}
	var problems []string
	for _, pass := range []struct {
		proto int
		into  map[*step][]frame
	}{{2, two}, {3, three}} {
		var res Result
		err := replay(ctx, target, f, pass.proto, &res, func(_ *Section, s *step, got []Reply, ok bool) {
			if strings.HasPrefix(s.source[0], "(end of section)") {
				problems = append(problems, fmt.Sprintf("%s:%d: connection @%s has messages that no .read takes: %v", f.Path, s.line, s.conn, got))
				return
			}
			frames, err := s.record(pass.proto, got)
			if err != nil {
				problems = append(problems, fmt.Sprintf("%s:%d: RESP%d: %v", f.Path, s.line, pass.proto, err))
				frames = s.want(pass.proto)
			}
			pass.into[s] = frames
		})
		if err != nil {
			return err
		}
	}
	for s, frames := range two {
		s.want2 = frames
	}
	for s, frames := range three {
		s.want3 = nil
		if two[s] == nil {
			s.want2 = frames // a section of RESP3 alone
		} else if !slices.Equal(linesOf(s.want(3)), linesOf(frames)) {
			s.want3 = frames
		}
	}
	if problems != nil {
		return fmt.Errorf("%s", strings.Join(problems, "\n"))
	}
	return nil
}

func linesOf(frames []frame) []string {
	var lines []string
	for _, f := range frames {
		lines = append(lines, f.lines...)
	}
	return lines
}

// record makes the frames for got, keeping those of before that match.
func (s *step) record(proto int, got []Reply) ([]frame, error) {
	want := s.want(proto)
	var out []frame
	for i, g := range got {
		if g.Kind == notSent {
			return nil, fmt.Errorf("not sent: %s", g.Text)
		}
		if i < len(want) {
			w := want[i]
			if w.pattern.matches(g, map[string]string{}) {
				out = append(out, w)
				continue
			}
			if w.hasMatcher() {
				return nil, fmt.Errorf("the reply does not match: want %q, have %q", w.lines, g.Lines())
			}
			if w.pattern.unordered {
				out = append(out, frame{lines: append([]string{"? unordered"}, g.sorted().Lines()...)})
				continue
			}
		}
		out = append(out, frame{lines: g.Lines()})
	}
	return out, nil
}
