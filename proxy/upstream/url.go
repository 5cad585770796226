package upstream

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// Target is what an upstream URL says.
type Target struct {
	Network  string // "tcp" or "unix"
	Address  string // host:port, or the path of the socket
	Host     string // the host alone, which TLS verifies; empty for unix
	TLS      bool   // rediss://
	Username string // empty: the default user
	Password string // empty: no AUTH is sent
	DB       int    // the database the URL names, 0 if none; Pool leaves its use to the caller
}

const urlShape = "write redis://[user:password@]host[:port][/db], rediss://... for TLS, " +
	"or unix://[user:password@]/path/to/socket[?db=N]"

// ParseURL reads an upstream URL: redis://[user:password@]host[:port][/db], the same with rediss
// (TLS), or unix://[user:password@]/path[?db=N]. The port defaults to 6379. A password alone is
// written redis://:password@host. Special characters in user and password are percent-encoded. Its
// errors never quote the URL, since it may hold a password.
func ParseURL(raw string) (Target, error) {
	scheme, _, ok := strings.Cut(raw, "://")
	if !ok {
		return Target{}, errors.New("upstream URL: has no scheme; " + urlShape)
	}
	switch strings.ToLower(scheme) {
	case "redis", "rediss", "unix":
	default:
		return Target{}, errors.New("upstream URL: unknown scheme; " + urlShape)
	}
	u, err := url.Parse(raw)
	if err != nil {
		// The parser's own text quotes pieces of the URL, a password among them.
		return Target{}, errors.New("upstream URL: cannot be parsed (are special characters in the password percent-encoded, and is the port a number?); " + urlShape)
	}
	if u.Fragment != "" || strings.Contains(raw, "#") {
		return Target{}, errors.New("upstream URL: has a fragment (a # in the password is written %23); " + urlShape)
	}
	var t Target
	if u.User != nil {
		t.Username = u.User.Username()
		t.Password, _ = u.User.Password()
		if t.Password == "" {
			return Target{}, errors.New("upstream URL: names a user without a password; a password alone is written redis://:password@host")
		}
	}
	if u.Scheme == "unix" {
		return unixTarget(t, u)
	}
	t.Network, t.TLS = "tcp", u.Scheme == "rediss"
	if t.Host = u.Hostname(); t.Host == "" {
		return Target{}, errors.New("upstream URL: has no host; " + urlShape)
	}
	port := u.Port()
	if port == "" {
		port = "6379"
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return Target{}, errors.New("upstream URL: the port must be 1 to 65535")
	}
	t.Address = net.JoinHostPort(t.Host, port)
	if u.RawQuery != "" {
		return Target{}, fmt.Errorf("upstream URL: %s:// takes no ?options; the database is the path, as in /3", u.Scheme)
	}
	if db := strings.TrimPrefix(u.Path, "/"); db != "" {
		if t.DB, err = parseDB(db); err != nil {
			return Target{}, err
		}
	}
	return t, nil
}

func unixTarget(t Target, u *url.URL) (Target, error) {
	if u.Host != "" || len(u.Path) < 2 {
		return Target{}, errors.New("upstream URL: unix needs an absolute path, as in unix:///run/redis/redis.sock")
	}
	t.Network, t.Address = "unix", u.Path
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return Target{}, errors.New("upstream URL: the ?options cannot be parsed; only ?db=N is known")
	}
	for name, values := range query {
		if name != "db" || len(values) != 1 {
			return Target{}, errors.New("upstream URL: unknown or repeated ?option; only ?db=N is known")
		}
		if t.DB, err = parseDB(values[0]); err != nil {
			return Target{}, err
		}
	}
	return t, nil
}

func parseDB(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil {
		return 0, errors.New("upstream URL: the database must be a number, as in redis://host:6379/0")
	}
	return int(n), nil
}
