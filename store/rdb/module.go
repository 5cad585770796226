package rdb

// TypeModule is the type byte before the value of a module.
const TypeModule = 7

// moduleID is the name "latchkey-" with the encoding version 0, as Redis writes
// the types of modules: nine characters of six bits, then ten bits.
const moduleID = uint64(0b100101_011010_101101_011100_100001_100100_011110_110010_111110) << 10

// What stands before each piece of a module's value.
const (
	pieceEnd    = 0
	pieceUint   = 2
	pieceString = 5
)

// Module is the value of a module: bytes that only it can read.
type Module struct {
	Name    string
	Version uint32 // of the encoding
	Value   []byte
}

// AppendModule appends a module's value in the form that Redis gives to those of
// its own modules, so that tools can skip it; redis-server says that it does
// not know the type.
func AppendModule(dst []byte, m *Module) []byte {
	dst = append(dst, 0x81) // a length of 64 bits
	for shift := 56; shift >= 0; shift -= 8 {
		dst = append(dst, byte(moduleID>>shift))
	}
	dst = append(dst, pieceString)
	dst = AppendString(dst, []byte(m.Name))
	dst = append(dst, pieceUint)
	dst = appendLength(dst, int(m.Version))
	dst = append(dst, pieceString)
	dst = AppendString(dst, m.Value)
	return append(dst, pieceEnd)
}

// ReadModule reads what AppendModule has written, with nothing behind it and no
// more than limit bytes of value. The value is a copy.
func ReadModule(b []byte, limit int64) (m Module, err error) {
	id, enc, b, ok := readLength(b)
	if !ok || enc || id != moduleID {
		return m, ErrFormat
	}
	piece := func(kind byte) bool {
		if len(b) == 0 || b[0] != kind {
			return false
		}
		b = b[1:]
		return true
	}
	if !piece(pieceString) {
		return m, ErrFormat
	}
	name, b, err := ReadString(b, 64)
	if err != nil || !piece(pieceUint) {
		return m, ErrFormat
	}
	version, enc, rest, ok := readLength(b)
	if b = rest; !ok || enc || version > 1<<32-1 || !piece(pieceString) {
		return m, ErrFormat
	}
	value, b, err := ReadString(b, limit)
	if err != nil || !piece(pieceEnd) || len(b) != 0 {
		return m, ErrFormat
	}
	return Module{string(name), uint32(version), value}, nil
}
