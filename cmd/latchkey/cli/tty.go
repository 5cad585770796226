package cli

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// terminal returns x as a file if it is a terminal.
func terminal(x any) (*os.File, bool) {
	f, ok := x.(*os.File)
	if !ok {
		return nil, false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), ioctlGetTermios)
	return f, err == nil
}

// makeRaw lets a terminal hand over each key as it is pressed, Ctrl-C included,
// and show none of them. Output is left alone: \n still returns the carriage.
func makeRaw(f *os.File) (restore func(), err error) {
	fd := int(f.Fd())
	old, err := unix.IoctlGetTermios(fd, ioctlGetTermios)
	if err != nil {
		return nil, err
	}
	raw := *old
	raw.Iflag &^= unix.BRKINT | unix.ICRNL | unix.INPCK | unix.ISTRIP | unix.IXON
	raw.Lflag &^= unix.ECHO | unix.ICANON | unix.IEXTEN | unix.ISIG
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(fd, ioctlSetTermios, &raw); err != nil {
		return nil, err
	}
	return func() { unix.IoctlSetTermios(fd, ioctlSetTermios, old) }, nil
}

// columns is the width of a terminal, 80 if it will not say.
func columns(f *os.File) int {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Col < 10 {
		return 80
	}
	return int(size.Col)
}

// askPassword reads a password without showing it.
func askPassword(stdin io.Reader, stderr io.Writer) (string, error) {
	f, ok := terminal(stdin)
	if !ok {
		return "", errors.New("--askpass needs a terminal; use LATCHKEY_AUTH in scripts")
	}
	e := newEditor(f, stderr)
	e.mask = true
	return e.readLine("Please input password: ")
}
