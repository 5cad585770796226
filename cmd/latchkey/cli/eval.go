package cli

import (
	"fmt"
	"io"
	"os"
	"strconv"
)

// evalCommand is the EVAL that --eval sends: the script in the file, then the
// arguments, of which those before a lone comma are keys. Without a comma all
// are. A file called "-" is standard input.
func evalCommand(file string, args []string, stdin io.Reader) ([]string, error) {
	var script []byte
	var err error
	if file == "-" {
		script, err = io.ReadAll(stdin)
	} else {
		script, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the script: %w", err)
	}
	keys := len(args)
	command := append(make([]string, 0, len(args)+3), "EVAL", string(script), "")
	for i, arg := range args {
		if arg == "," && keys == len(args) {
			keys = i
			continue
		}
		command = append(command, arg)
	}
	command[2] = strconv.Itoa(keys)
	return command, nil
}
