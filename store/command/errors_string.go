package command

// The texts of error replies that only strings and bits give.
const (
	errLCSType        = "ERR The specified keys must contain string values"
	errLCSLenAndIdx   = "ERR If you want both the length and indexes, please just use IDX."
	errLCSTooLong     = "ERR String too long for LCS"
	errLCSMemory      = "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len"
	errBitArgument    = "ERR The bit argument must be 1 or 0."
	errBitopNot       = "ERR BITOP NOT must be called with a single source key."
	errBitfieldType   = "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is."
	errOverflowType   = "ERR Invalid OVERFLOW type specified"
	errBitfieldRO     = "ERR BITFIELD_RO only supports the GET subcommand"
	errDigestLength   = "ERR must be exactly 16 hexadecimal characters"
	errDelexCondition = "ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE"
	errDelexType      = "ERR Key should be of string type if conditions are specified"
	errNumKeys        = "ERR invalid numkeys value"
	errPairs          = "ERR wrong number of key-value pairs"
)

// invalidExpire is the error of an expiry that is not above zero or overflows.
func invalidExpire(s *Spec) string {
	return "ERR invalid expire time in '" + s.FullName() + "' command"
}
