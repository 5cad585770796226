package proxy

import (
	"math/rand/v2"
	"strings"

	"github.com/latchkey-proxy/latchkey/store/command"
)

// The key that LOLWUT draws.
const (
	fewestTeeth = 3
	mostTeeth   = 64
)

// lolwut draws a latchkey, cut differently each time. As in Redis it takes a
// version and numbers behind it, of which the first is the number of teeth.
func lolwut(c *command.Call) {
	teeth := 9
	if len(c.Args) >= 2 && c.Is(1, "version") {
		for i := 2; i < len(c.Args); i++ {
			n, ok := c.Int(i)
			if !ok {
				return
			}
			if i == 3 {
				teeth = int(min(mostTeeth, max(fewestTeeth, n)))
			}
		}
	}
	c.Reply.Verbatim("txt", drawKey(teeth, rand.IntN)+"\nno two alike, and one holder each. Redis ver. "+RedisVersion+"\n")
}

// drawKey draws a key whose teeth are one to three high; pick chooses.
func drawKey(teeth int, pick func(n int) int) string {
	cut := make([]int, teeth)
	for i := range cut {
		cut[i] = 1 + pick(3)
	}
	var b strings.Builder
	blade := strings.Repeat("=", 6+2*teeth)
	b.WriteString("  .---.\n")
	b.WriteString(" /     \\" + strings.Repeat("_", len(blade)) + "\n")
	b.WriteString("|  ( )  " + blade + ">\n")
	for row, left := range []string{` \     /      `, "  '---'       ", "              "} {
		line := left
		for _, high := range cut {
			if high > row {
				line += "U "
			} else {
				line += "  "
			}
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}
