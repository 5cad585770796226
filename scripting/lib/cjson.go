package lib

import (
	"fmt"
	"math"

	"github.com/latchkey-proxy/latchkey/scripting/text"
	"github.com/latchkey-proxy/latchkey/scripting/value"
)

// Settings are those of one cjson table. In Redis a script's settings stay for
// all scripts after it; here the table that scripts find lasts for one run.
type Settings struct {
	sparseConvert bool
	sparseRatio   int32
	sparseSafe    int32
	encodeDepth   int32
	decodeDepth   int32
	precision     int32
	keepBuffer    bool
	encodeInvalid int // of invalidNumbers
	decodeInvalid bool
}

// invalidNumbers are what encode may do with infinities and NaN.
var invalidNumbers = []string{"off", "on", "null"}

const (
	invalidOff = iota
	invalidOn
	invalidNull
)

// Defaults are the settings of a new cjson table.
func Defaults() Settings {
	return Settings{
		sparseRatio: 2, sparseSafe: 10, encodeDepth: 1000, decodeDepth: 1000, precision: 14,
		keepBuffer: true, decodeInvalid: true,
	}
}

// Null is cjson.null.
var Null = value.Light(0)

// CJSON is lua-cjson 2.1.0 with settings of its own, which its functions change.
// It has no function new: that is the engine's, which makes a table of another CJSON.
func CJSON(s *Settings) Library {
	return Library{
		Name: "cjson",
		Funcs: map[string]Func{
			"decode":                 func(c *Call) error { return decodeJSON(c, s) },
			"decode_invalid_numbers": func(c *Call) error { return s.setDecodeInvalid(c) },
			"decode_max_depth":       func(c *Call) error { return setOne(c, &s.decodeDepth, 1, math.MaxInt32) },
			"encode":                 func(c *Call) error { return encodeJSON(c, s) },
			"encode_invalid_numbers": func(c *Call) error { return s.setEncodeInvalid(c) },
			"encode_keep_buffer":     func(c *Call) error { return s.setKeepBuffer(c) },
			"encode_max_depth":       func(c *Call) error { return setOne(c, &s.encodeDepth, 1, math.MaxInt32) },
			"encode_number_precision": func(c *Call) error {
				return setOne(c, &s.precision, 1, 14)
			},
			"encode_sparse_array": func(c *Call) error { return s.setSparse(c) },
		},
		Texts:  map[string]string{"_NAME": "cjson", "_VERSION": "2.1.0"},
		Values: map[string]value.Value{"null": Null},
	}
}

// atMost refuses more than n arguments.
func (c *Call) atMost(n int) error {
	if len(c.Args) > n {
		return argError(n+1, "found too many arguments")
	}
	return nil
}

func setOne(c *Call, setting *int32, low, high int32) error {
	if err := c.atMost(1); err != nil {
		return err
	}
	return c.setInteger(1, setting, low, high)
}

// setInteger sets from argument n, unless that is nil, and answers the setting.
func (c *Call) setInteger(n int, setting *int32, low, high int32) error {
	if !c.arg(n).IsNil() {
		i, err := c.integer(n)
		if err != nil {
			return err
		}
		v := int32(i)
		if v < low || v > high {
			return argError(1, fmt.Sprintf("expected integer between %d and %d", low, high))
		}
		*setting = v
	}
	c.result(value.Int(int(*setting)))
	return nil
}

// setOption sets from argument n one of options; a boolean is the first of them or
// the one of index yes. It answers the setting, as a boolean where it can.
func (c *Call) setOption(n int, setting *int, options []string, yes int) error {
	switch v := c.arg(n); v.Kind() {
	case value.KindNil:
	case value.KindBool:
		*setting = 0
		if v.AsBool() {
			*setting = yes
		}
	default:
		word, err := c.str(n)
		if err != nil {
			return err
		}
		word = text.CString(word)
		found := -1
		for i, option := range options {
			if word == option {
				found = i
			}
		}
		if found < 0 {
			return argError(n, "invalid option '"+word+"'")
		}
		*setting = found
	}
	if *setting == 0 || *setting == yes {
		c.result(value.Bool(*setting == yes))
	} else {
		c.result(value.String(options[*setting]))
	}
	return nil
}

func (c *Call) setBool(n int, setting *bool) error {
	i := 0
	if *setting {
		i = 1
	}
	err := c.setOption(n, &i, invalidNumbers[:invalidOn+1], invalidOn)
	*setting = i == invalidOn
	return err
}

func (s *Settings) setSparse(c *Call) error {
	if err := c.atMost(3); err != nil {
		return err
	}
	if err := c.setBool(1, &s.sparseConvert); err != nil {
		return err
	}
	if err := c.setInteger(2, &s.sparseRatio, 0, math.MaxInt32); err != nil {
		return err
	}
	return c.setInteger(3, &s.sparseSafe, 0, math.MaxInt32)
}

func (s *Settings) setKeepBuffer(c *Call) error {
	if err := c.atMost(1); err != nil {
		return err
	}
	return c.setBool(1, &s.keepBuffer)
}

func (s *Settings) setDecodeInvalid(c *Call) error {
	if err := c.atMost(1); err != nil {
		return err
	}
	return c.setBool(1, &s.decodeInvalid)
}

func (s *Settings) setEncodeInvalid(c *Call) error {
	if err := c.atMost(1); err != nil {
		return err
	}
	return c.setOption(1, &s.encodeInvalid, invalidNumbers, invalidOn)
}
