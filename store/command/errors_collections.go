package command

// The texts of error replies that only lists and sets give.
const (
	errNumKeysZero      = "ERR numkeys should be greater than 0"
	errNumKeysArguments = "ERR Number of keys can't be greater than number of args"
	errCountZero        = "ERR count should be greater than 0"
	errCountNegative    = "ERR COUNT can't be negative"
	errMaxLenNegative   = "ERR MAXLEN can't be negative"
	errLimitNegative    = "ERR LIMIT can't be negative"
	errRankZero         = "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from the end of the list"
	errLongRange        = "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807"
)
