package resp

// aheadArgs is how many arguments a command may have for Ahead to look at it.
const aheadArgs = 8

// Ahead appends to dst the argument at place arg of each whole command that has
// been read but not been returned by Next, as many as dst has room for, and
// stops at the first command that is out of the ordinary. It is a guess at what
// comes, for whoever wants to have it at hand; Next alone judges. The views are
// valid as long as those of the last Next.
func (r *Reader) Ahead(arg int, dst [][]byte) [][]byte {
	if r.pending && len(dst) < cap(dst) {
		if f := &r.cmds[1-r.cur]; arg < len(f.args) {
			dst = append(dst, f.args[arg])
		}
	}
	if r.scan != (scan{}) || r.err != nil {
		return dst
	}
	var table [aheadArgs][]byte
	buf := r.b.unread()
	for len(dst) < cap(dst) && len(buf) > 0 && buf[0] == '*' {
		count, n := cut(buf, table[:], aheadArgs, len(buf))
		if n == 0 {
			break
		}
		if arg < count {
			dst = append(dst, table[arg])
		}
		buf = buf[n:]
	}
	return dst
}
