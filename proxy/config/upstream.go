package config

import (
	"errors"
	"net"
	"net/url"
	"strconv"
)

// Upstream is what the upstream directive says.
type Upstream struct {
	Addr     string // host:port, as net.Dial takes it
	User     string // empty for the default user
	Password string // empty for none
	DB       int    // the upstream's database that stands behind database 0; 0 unless the URL names one
}

// ParseUpstream reads redis://[user:password@]host:port[/db]; the port may be left out and is 6379 then. Its errors
// never repeat the URL, which may hold a password.
func ParseUpstream(s string) (Upstream, error) {
	const want = "write it as redis://[user:password@]host:port[/db]"
	u, err := url.Parse(s)
	if err != nil {
		return Upstream{}, errors.New("not a URL: " + want)
	}
	switch {
	case u.Scheme == "rediss":
		return Upstream{}, errors.New("rediss:// is not supported: the upstream is reached without TLS")
	case u.Scheme != "redis":
		return Upstream{}, errors.New("not a redis:// URL: " + want)
	case u.Hostname() == "":
		return Upstream{}, errors.New("the URL names no host: " + want)
	case u.RawQuery != "" || u.Fragment != "":
		return Upstream{}, errors.New("the URL has more than host, port and database: " + want)
	}
	up := Upstream{User: u.User.Username()}
	up.Password, _ = u.User.Password()
	port := u.Port()
	if port == "" {
		port = "6379"
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return Upstream{}, errors.New("the URL's port must be from 1 to 65535")
	}
	up.Addr = net.JoinHostPort(u.Hostname(), port)
	if u.Path != "" && u.Path != "/" {
		db, err := strconv.ParseUint(u.Path[1:], 10, 31)
		if err != nil {
			return Upstream{}, errors.New("the URL's path must be the number of a database: " + want)
		}
		up.DB = int(db)
	}
	return up, nil
}
