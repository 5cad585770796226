package rdb

import (
	"encoding/binary"
	"errors"
	"hash/crc64"
)

const (
	// Version is the RDB version that payloads are written with: that of Redis
	// 7.0, so that 7.0 and all that came after it read them.
	Version = 10
	// NewestVersion is the newest that is read: that of Redis 7.2, whose strings
	// are the same.
	NewestVersion = 11

	footer = 2 + 8 // version and checksum, both little-endian
)

// ErrFooter is the error of a payload whose version is too new, or whose bytes
// do not agree with their checksum.
var ErrFooter = errors.New("rdb: version or checksum of the payload is wrong")

// jones is the CRC-64 that Redis uses, reflected.
var jones = crc64.MakeTable(0x95ac9329ac4bc9b5)

// checksum begins and ends at zero, where hash/crc64 inverts.
func checksum(b []byte) uint64 { return ^crc64.Update(^uint64(0), jones, b) }

// Seal appends the footer to the value in dst, which is all of dst.
func Seal(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint16(dst, Version)
	return binary.LittleEndian.AppendUint64(dst, checksum(dst))
}

// Open checks the footer of a payload and returns the value before it, a view.
func Open(payload []byte) ([]byte, error) {
	n := len(payload) - footer
	if n < 0 || binary.LittleEndian.Uint16(payload[n:]) > NewestVersion ||
		binary.LittleEndian.Uint64(payload[n+2:]) != checksum(payload[:n+2]) {
		return nil, ErrFooter
	}
	return payload[:n], nil
}
