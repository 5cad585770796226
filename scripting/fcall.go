package scripting

import "github.com/latchkey-proxy/latchkey/store/command"

const (
	errNoFunction = "ERR Function not found"
	errNumKeys    = "ERR Bad number of keys provided"
)

func (r *Runner) fcall(c *command.Call)   { r.callNamed(c, false) }
func (r *Runner) fcallRO(c *command.Call) { r.callNamed(c, true) }

// prepareCall has the transaction of a function that was lengthy lately lock its
// keys at once, and what its engine needs be made. Which function it is the transaction decides.
func (r *Runner) prepareCall(c *command.Call) {
	if f := r.libraries.committed.Load().find(c.Args[1]); f != nil {
		r.engine.Ready(f.Library.Body)
		c.Lengthy = f.Lengthy()
	}
}

func (r *Runner) callNamed(c *command.Call, readOnly bool) {
	set := r.libraries.seenBy(c)
	f := set.find(c.Args[1])
	if f == nil {
		c.Err(errNoFunction)
		return
	}
	keys, args, ok := words(c, errNumKeys)
	if !ok {
		return
	}
	r.run(c, f.Library.Body, f, keys, args, readOnly)
}
