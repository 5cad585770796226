package command

import "fmt"

// The texts of error replies that only keys and databases give.
const (
	errSameObject      = "ERR source and destination objects are the same"
	errExpireNX        = "ERR NX and XX, GT or LT options at the same time are not compatible"
	errExpireGTLT      = "ERR GT and LT options at the same time are not compatible"
	errIntRange        = "ERR value is out of range, value must between -2147483648 and 2147483647"
	errBoolRange       = "ERR value is out of range, value must between 0 and 1"
	errPositive        = "ERR value is out of range, must be positive"
	errFirstDB         = "ERR invalid first DB index"
	errSecondDB        = "ERR invalid second DB index"
	errTimeoutInteger  = "ERR timeout is not an integer or out of range"
	errTimeoutRange    = "ERR timeout is out of range"
	errAppendOnlyOff   = "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled."
	errNoFrequency     = "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust."
	errRestoreTTL      = "ERR Invalid TTL value, must be >= 0"
	errRestoreIdletime = "ERR Invalid IDLETIME value, must be >= 0"
	errRestoreFreq     = "ERR Invalid FREQ value, must be >= 0 and <= 255"
	errPayload         = "ERR DUMP payload version or checksum are wrong"
	errPayloadFormat   = "ERR Bad data format"
)

// unsupportedOption is the error of an option that EXPIRE does not know.
func unsupportedOption(opt []byte) string {
	return oneLine(fmt.Sprintf("ERR Unsupported option %s", clip(opt, len(opt))))
}
