package fuel

// Subsections of the name section.
const (
	namesModule    = 0
	namesFunctions = 1
	namesLocals    = 2
)

// shiftedNames returns the name section's content, its name included, with
// function indexes shifted, or nil if there is none or it is malformed, which
// as for every custom section is no error. Names of anything else are dropped.
func (m *module) shiftedNames() []byte {
	if m.names == nil {
		return nil
	}
	out := appendName(nil, "name")
	r := reader{b: m.names, what: "name section"}
	last := -1
	for r.more() {
		id := int(r.byte())
		content := r.until(r.u32())
		if r.err != nil || id <= last {
			return nil
		}
		last = id
		if id > namesLocals {
			continue
		}
		b := m.shiftSubsection(id, &content)
		if content.err != nil || content.at != len(content.b) {
			return nil
		}
		out = append(out, byte(id))
		out = appendU32(out, uint32(len(b)))
		out = append(out, b...)
	}
	if r.err != nil {
		return nil
	}
	return out
}

// shiftSubsection reads a subsection and returns it rewritten.
func (m *module) shiftSubsection(id int, r *reader) []byte {
	start := r.at
	if id == namesModule {
		r.name()
		return r.b[start:r.at]
	}
	n := r.count(m.functions(), "named functions")
	b := appendU32(nil, uint32(n))
	last := -1
	for i := 0; i < n && r.err == nil; i++ {
		fn := r.index(m.functions(), "function")
		if int(fn) <= last {
			r.fail("functions out of order")
		}
		last = int(fn)
		b = appendU32(b, m.shift(fn))
		entry := r.at
		if id == namesFunctions {
			r.name()
		} else {
			m.localNames(r)
		}
		if r.err != nil {
			return nil
		}
		b = append(b, r.b[entry:r.at]...)
	}
	return b
}

func (m *module) localNames(r *reader) {
	last := -1
	n := r.count(m.limits.Locals, "named locals")
	for i := 0; i < n && r.err == nil; i++ {
		local := int(r.u32())
		if local <= last {
			r.fail("locals out of order")
		}
		last = local
		r.name()
	}
}
