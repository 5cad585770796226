package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Read returns the manifest of a module: ErrMissing if it has none, an [*Error]
// if it is wrong. Of the module itself only the sections' lengths are looked at.
func Read(wasm []byte) (*Manifest, error) {
	document, err := Document(wasm)
	if err != nil {
		return nil, err
	}
	return Parse(document)
}

// Document returns the manifest of a module as it stands there, a view into it
// that has not been checked.
func Document(wasm []byte) ([]byte, error) {
	var found []byte
	err := sections(wasm, func(start, end int, name, content []byte) error {
		if string(name) != SectionName {
			return nil
		}
		if found != nil {
			return fmt.Errorf("manifest: the module has two custom sections %s, the second at offset %d; wanted one", SectionName, start)
		}
		found = content[:len(content):len(content)]
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case found == nil:
		return nil, ErrMissing
	case len(found) > MaxBytes:
		return nil, &Error{Found: fmt.Sprintf("%d bytes", len(found)), Want: fmt.Sprintf("at most %d", MaxBytes)}
	}
	return found, nil
}

// Pack returns the module with the given manifest, which is checked and written
// without white space at the module's end. One that is there already is
// replaced. The result depends on nothing but the arguments.
func Pack(wasm, document []byte) ([]byte, error) {
	if _, err := Parse(document); err != nil {
		return nil, err
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, document); err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	out := make([]byte, 0, len(wasm)+compact.Len()+len(SectionName)+16)
	kept := 0
	err := sections(wasm, func(start, end int, name, _ []byte) error {
		if string(name) == SectionName {
			out = append(out, wasm[kept:start]...)
			kept = end
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	out = append(out, wasm[kept:]...)
	content := append(appendU32(nil, uint32(len(SectionName))), SectionName...)
	content = append(content, compact.Bytes()...)
	out = appendU32(append(out, 0), uint32(len(content)))
	return append(out, content...), nil
}

// sections calls visit for each custom section: its place in the module, and
// views of its name and content.
func sections(wasm []byte, visit func(start, end int, name, content []byte) error) error {
	if !bytes.HasPrefix(wasm, []byte("\x00asm\x01\x00\x00\x00")) {
		return fmt.Errorf("manifest: not a WebAssembly module of version 1: it must begin with 00 61 73 6d 01 00 00 00")
	}
	for at := 8; at < len(wasm); {
		content, n := take(wasm[at+1:])
		if n == 0 {
			return fmt.Errorf("manifest: section at offset %d is longer than the module", at)
		}
		end := at + 1 + n
		if wasm[at] == 0 {
			name, n := take(content)
			if n == 0 {
				return fmt.Errorf("manifest: custom section at offset %d ends within its name", at)
			}
			if err := visit(at, end, name, content[n:]); err != nil {
				return err
			}
		}
		at = end
	}
	return nil
}

// take returns the bytes that follow their length at the beginning of b, and
// how many bytes that is with the length; 0 if b is too short.
func take(b []byte) ([]byte, int) {
	var length uint64
	for i := 0; i < len(b) && i < 5; i++ {
		length |= uint64(b[i]&0x7f) << (7 * i)
		if b[i] < 0x80 {
			if length > uint64(len(b)-i-1) {
				return nil, 0
			}
			end := i + 1 + int(length)
			return b[i+1 : end], end
		}
	}
	return nil, 0
}

func appendU32(b []byte, v uint32) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}
