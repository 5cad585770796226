package rdb

// lzfGain is the most bytes that one packed byte can stand for: three bytes make
// a reference of 264.
const lzfGain = 264 / 3

// unpack appends to dst, which is empty, what the packed bytes stand for: n
// bytes exactly, or the result is nil.
//
// Packed bytes are a row of runs. A first byte below 32 is followed by that many
// bytes and one more, which stand for themselves. Otherwise its upper three bits
// are a length (7: the next byte is added) and its lower five, with one more
// byte, a distance: length+2 bytes are repeated from distance+1 back on.
func unpack(dst, packed []byte, n int) []byte {
	for len(packed) > 0 {
		first := int(packed[0])
		packed = packed[1:]
		if first < 1<<5 {
			run := first + 1
			if run > len(packed) || run > n-len(dst) {
				return nil
			}
			dst = append(dst, packed[:run]...)
			packed = packed[run:]
			continue
		}
		run := first >> 5
		if run == 7 {
			if len(packed) == 0 {
				return nil
			}
			run += int(packed[0])
			packed = packed[1:]
		}
		if len(packed) == 0 {
			return nil
		}
		from := len(dst) - (first&0x1f<<8 | int(packed[0])) - 1
		packed = packed[1:]
		run += 2
		if from < 0 || run > n-len(dst) {
			return nil
		}
		for ; run > 0; run-- { // a reference may reach into what it appends
			dst = append(dst, dst[from])
			from++
		}
	}
	if len(dst) != n {
		return nil
	}
	return dst
}
