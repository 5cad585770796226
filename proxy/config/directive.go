package config

import (
	"strconv"
	"strings"
)

// Kind says how a directive's value is written and read.
type Kind uint8

// The kinds. The text in quotes is what CONFIG GET prints.
const (
	Bool            Kind = iota // "yes" or "no"
	Int                         // a decimal integer, strictly written: no sign +, no leading zero
	Octal                       // an octal integer: file permissions
	Memory                      // bytes; may be written with b, k, kb, m, mb, g, gb (k is 1000, kb 1024)
	MemoryOrPercent             // as Memory, or "5%"
	Enum                        // one of Directive.Enum
	Flags                       // one or more of Directive.Enum but the first, which stands for none
	String                      // any bytes
	Dir                         // an existing directory; kept as an absolute path
	Words                       // a list of words; repeated lines replace, or add if Repeatable
	Lines                       // one argument vector per line of the file; not visible to CONFIG GET
	SavePoints                  // pairs of seconds and changes
	BufferLimits                // client class, hard bytes, soft bytes, soft seconds, for each of the three classes
	KeyspaceEvents              // event classes in Redis's canonical order, such as "AKE"
	Percentiles                 // numbers from 0 to 100
	OOMScores                   // three integers from -2000 to 2000
	HostPort                    // "host port", or empty
)

var kindNames = [...]string{
	"yes or no", "integer", "octal integer", "memory", "memory or percent", "choice", "choices", "string",
	"directory", "list", "line", "pairs", "limits", "event classes", "list of numbers", "three integers", "host and port",
}

// String names the kind in words for the reference page.
func (k Kind) String() string { return kindNames[k] }

// manyArguments reports whether values of this kind consist of several words.
func (k Kind) manyArguments() bool {
	switch k {
	case Flags, Words, Lines, SavePoints, BufferLimits, Percentiles, OOMScores, HostPort:
		return true
	}
	return false
}

// number reports whether values of this kind have a number that Int or Memory may read.
func (k Kind) number() bool {
	switch k {
	case Int, Octal, Memory, MemoryOrPercent:
		return true
	}
	return false
}

// Directive is one setting. The table's entries are read-only once New has taken them.
type Directive struct {
	Name    string   // as in redis.conf, lower case
	Aliases []string // older names, under which CONFIG GET shows it as well
	Group   string   // heading in the reference page
	Kind    Kind
	Default string   // as CONFIG GET prints it
	Min     int64    // least value of a number; below zero it bounds the percentage of MemoryOrPercent
	Max     int64    // greatest value of a number
	Huge    bool     // sizes from 2^63 up to 2^64-1 are accepted too, and count as the largest int64
	Enum    []string // the choices, in the order in which an error lists them
	Summary string   // what it does here, with units

	Mutable    bool // CONFIG SET may change it
	Protected  bool // CONFIG SET may change it if enable-protected-configs lets the client
	Hidden     bool // CONFIG GET shows it only to those who ask for its exact name
	Redacted   bool // the value is a secret: it stays out of SLOWLOG, MONITOR, logs and error texts
	Repeatable bool // repeated lines add to each other
	Ignored    bool // known because Redis has it; nothing here depends on it

	// Unsupported, when not empty, says why no value but the default can be had. A file that asks for another
	// gets a warning and the default, or an error if Required is set; CONFIG SET is refused with this text.
	Unsupported string
	Required    bool

	// Warn is the warning for a file that sets a value other than the default of a directive whose silent
	// acceptance would mislead the operator.
	Warn string

	same   map[string]string          // choices that mean another one
	adjust func(n int64) int64        // brings an accepted number into its useful range, as Redis does with hz
	check  func(v string) string      // says what is wrong with a word or string, or nothing
	line   func(args []string) string // the same for a line of kind Lines
	takes  string                     // what Takes answers, where the kind says too little
}

// Takes says in a few words what values the directive accepts, for hints and the reference page.
func (d *Directive) Takes() string {
	if d.takes != "" {
		return d.takes
	}
	switch d.Kind {
	case Int:
		return "an integer " + d.bounds()
	case Octal:
		return "an octal integer " + d.bounds()
	case Memory:
		return "a memory size such as 512kb, 64mb or 1gb" + d.sizes()
	case MemoryOrPercent:
		return "a memory size such as 64mb, or a percentage such as 5%"
	case Enum:
		return "one of " + strings.Join(d.Enum, ", ")
	case Flags:
		return "one or more of " + strings.Join(d.Enum, ", ")
	case SavePoints:
		return `pairs of seconds and changes such as "3600 1 300 100", or ""`
	case BufferLimits:
		return "class hard-limit soft-limit soft-seconds, the class being normal, replica or pubsub"
	case KeyspaceEvents:
		return "event classes out of Ag$lshzxeKEtmdn"
	case Percentiles:
		return "numbers from 0 to 100"
	case OOMScores:
		return "three integers from -2000 to 2000"
	case HostPort:
		return "a host and a port, or no one"
	case Dir:
		return "an existing directory"
	case Words, Lines:
		return "one or more words"
	case Bool:
		return "yes or no"
	}
	return "one word, in quotes if it has spaces"
}

// sizes says which memory sizes are accepted, if not all are.
func (d *Directive) sizes() (text string) {
	if d.Min > 0 {
		text += ", at least " + sizeText(d.Min)
	}
	if d.Max < maxInt64 {
		text += ", at most " + sizeText(d.Max)
	}
	return text
}

// sizeText is a number of bytes as one writes it into a file.
func sizeText(n int64) string {
	units := []string{"", "kb", "mb", "gb"}
	i := 0
	for n%1024 == 0 && n > 0 && i < len(units)-1 {
		n /= 1024
		i++
	}
	return strconv.FormatInt(n, 10) + units[i]
}

func (d *Directive) bounds() string {
	n := func(v int64) string { return formatNumber(d.Kind, v) }
	if d.Max == maxInt64 {
		return "of at least " + n(d.Min)
	}
	return "from " + n(d.Min) + " to " + n(d.Max)
}
