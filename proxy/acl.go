package proxy

import (
	"crypto/rand"
	"encoding/hex"

	"github.com/latchkey-proxy/latchkey/store/command"
)

const (
	aclFlags      = command.NoScript | command.Loading | command.Stale
	aclAdminFlags = aclFlags | command.Admin
)

const onlyDefault = "There is one user, default, whose password is requirepass."

// aclCommands are the Specs of this family, made anew for each server.
func aclCommands() []*command.Spec {
	return []*command.Spec{{
		Name: "acl", Arity: -2, Access: command.Free, Group: "server", Since: "6.0.0", Complexity: "Depends on subcommand.",
		Summary: "A container for commands about users.", Differs: onlyDefault,
		Help: []string{
			"CAT [<category>]",
			"    List all commands that belong to <category>, or all command categories",
			"    when no category is specified.",
			"DELUSER <username> [<username> ...]",
			"    Delete a list of users.",
			"DRYRUN <username> <command> [<arg> ...]",
			"    Returns whether the user can execute the given command without executing the command.",
			"GETUSER <username>",
			"    Get the user's details.",
			"GENPASS [<bits>]",
			"    Generate a secure 256-bit user password. The optional `bits` argument can",
			"    be used to specify a different size.",
			"LIST",
			"    Show users details in config file format.",
			"LOAD",
			"    Reload users from the ACL file.",
			"LOG [<count> | RESET]",
			"    Show the ACL log entries.",
			"SAVE",
			"    Save the current config to the ACL file.",
			"SETUSER <username> <attribute> [<attribute> ...]",
			"    Create or modify a user with the specified attributes.",
			"USERS",
			"    List all the registered usernames.",
			"WHOAMI",
			"    Return the current connection username.",
		},
		Sub: []*command.Spec{
			{
				Name: "cat", Arity: -2, Flags: aclFlags, Access: command.Free, Handler: aclCat,
				Group: "server", Since: "6.0.0", Complexity: "O(1) since the categories and commands are a fixed set.",
				Summary: "Lists the ACL categories, or the commands of one.", Syntax: "[category]",
			},
			{
				Name: "deluser", Arity: -3, Flags: aclAdminFlags, Access: command.Free, Handler: aclDelUser,
				Group: "server", Since: "6.0.0", Complexity: "O(1)",
				Summary: "Removes users, of whom there are none but the one that stays.", Syntax: "username [username ...]", Differs: onlyDefault,
			},
			{
				Name: "dryrun", Arity: -4, Flags: aclAdminFlags, Access: command.Free, Handler: aclDryRun,
				Group: "server", Since: "7.0.0", Complexity: "O(1).",
				Summary: "Tells whether a user could run a command.", Syntax: "username command [arg [arg ...]]", Differs: onlyDefault,
			},
			{
				Name: "genpass", Arity: -2, Flags: aclFlags, Access: command.Free, Handler: aclGenPass,
				Group: "server", Since: "6.0.0", Complexity: "O(1)",
				Summary: "Returns random bits to be used as a password, in hexadecimal.", Syntax: "[bits]",
			},
			{
				Name: "getuser", Arity: 3, Flags: aclAdminFlags, Access: command.Free, Handler: aclGetUser,
				Group: "server", Since: "6.0.0", Complexity: "O(1)",
				Summary: "Returns the rules of a user.", Syntax: "username", Differs: onlyDefault,
			},
			{
				Name: "list", Arity: 2, Flags: aclAdminFlags, Access: command.Free, Handler: aclList,
				Group: "server", Since: "6.0.0", Complexity: "O(1)",
				Summary: "Returns the users as they would stand in a configuration file.", Differs: onlyDefault,
			},
			{
				Name: "load", Arity: 2, Flags: aclAdminFlags, Access: command.Free, Handler: aclFile,
				Group: "server", Since: "6.0.0", Complexity: "O(1)", Summary: "Answers that there is no ACL file.", Differs: "Not supported.",
			},
			{
				Name: "log", Arity: -2, Flags: aclAdminFlags, Access: command.Free, Handler: aclLog,
				Group: "server", Since: "6.0.0", Complexity: "O(1)",
				Summary: "Returns what was denied by ACL rules, of which there are none.", Syntax: "[count | RESET]",
				Differs: "Always empty; failed authentications are counted in INFO as acl_access_denied_auth.",
			},
			{
				Name: "save", Arity: 2, Flags: aclAdminFlags, Access: command.Free, Handler: aclFile,
				Group: "server", Since: "6.0.0", Complexity: "O(1)", Summary: "Answers that there is no ACL file.", Differs: "Not supported.",
			},
			{
				Name: "setuser", Arity: -3, Flags: aclAdminFlags, Access: command.Free, Handler: aclSetUser,
				Group: "server", Since: "6.0.0", Complexity: "O(1)",
				Summary: "Answers that users cannot be made or changed.", Syntax: "username [rule [rule ...]]", Differs: "Not supported yet.",
			},
			{
				Name: "users", Arity: 2, Flags: aclAdminFlags, Access: command.Free, Handler: aclUsers,
				Group: "server", Since: "6.0.0", Complexity: "O(1)", Summary: "Returns the users' names.", Differs: onlyDefault,
			},
			{
				Name: "whoami", Arity: 2, Flags: aclFlags, Access: command.Free, Handler: aclWhoAmI,
				Group: "server", Since: "6.0.0", Complexity: "O(1)", Summary: "Returns the user that the connection is authenticated as.",
			},
			command.HelpSpec("acl", "6.0.0"),
		},
	}}
}

func aclCat(c *command.Call) {
	if len(c.Args) > 3 {
		c.Err(command.UnknownSubcommand(c.Spec, c.Args[1]))
		return
	}
	var names []string
	if len(c.Args) == 2 {
		names = command.Category(^uint32(0)).Names()
	} else {
		category := command.CategoryByName(string(c.Args[2]))
		if category == 0 {
			c.Err("ERR Unknown category '" + string(c.Args[2]) + "'")
			return
		}
		for _, spec := range asServer(c).stats.allCommands() {
			if spec.AllCategories()&category != 0 {
				names = append(names, spec.FullName())
			}
		}
	}
	c.Reply.Array(len(names))
	for _, name := range names {
		c.Reply.BulkString(name)
	}
}

func aclDelUser(c *command.Call) {
	for _, name := range c.Args[2:] {
		if string(name) == "default" {
			c.Err("ERR The 'default' user cannot be removed")
			return
		}
	}
	c.Reply.Int(0)
}

func aclDryRun(c *command.Call) {
	if string(c.Args[2]) != "default" {
		c.Err("ERR User '" + string(c.Args[2]) + "' not found")
		return
	}
	table := asServer(c).engine.Table
	if table.Lookup(c.Args[3]) == nil {
		c.Err("ERR Command '" + string(c.Args[3]) + "' not found")
		return
	}
	if _, msg := table.Find(c.Args[3:]); msg != "" {
		c.Err(msg)
		return
	}
	c.OK()
}

// The bits of ACL GENPASS.
const (
	usualPassword   = 256
	longestPassword = 4096
)

func aclGenPass(c *command.Call) {
	if len(c.Args) > 3 {
		c.Err(command.UnknownSubcommand(c.Spec, c.Args[1]))
		return
	}
	bits := int64(usualPassword)
	if len(c.Args) == 3 {
		n, ok := c.Int(2)
		if !ok {
			return
		}
		if n <= 0 || n > longestPassword {
			c.Err("ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096")
			return
		}
		bits = n
	}
	digits := int(bits+3) / 4
	random := make([]byte, (digits+1)/2)
	rand.Read(random)
	c.Reply.BulkString(hex.EncodeToString(random)[:digits])
}

// hex is the password's SHA-256 in hexadecimal, as ACL rules have it.
func (p *password) hex() string { return hex.EncodeToString(p.digest[:]) }

func aclGetUser(c *command.Call) {
	if string(c.Args[2]) != "default" {
		c.Reply.Null()
		return
	}
	p := asServer(c).auth.Load()
	flags, passwords := []string{"on", "nopass"}, []string(nil)
	if p != nil {
		flags, passwords = flags[:1], []string{p.hex()}
	}
	r := c.Reply
	r.Map(6)
	r.BulkString("flags")
	r.Set(len(flags))
	for _, f := range flags {
		r.BulkString(f)
	}
	r.BulkString("passwords")
	r.Array(len(passwords))
	for _, digest := range passwords {
		r.BulkString(digest)
	}
	r.BulkString("commands")
	r.BulkString("+@all")
	r.BulkString("keys")
	r.BulkString("~*")
	r.BulkString("channels")
	r.BulkString("&*")
	r.BulkString("selectors")
	r.Array(0)
}

func aclList(c *command.Call) {
	secret := "nopass"
	if p := asServer(c).auth.Load(); p != nil {
		secret = "#" + p.hex()
	}
	c.Reply.Array(1)
	c.Reply.BulkString("user default on " + secret + " ~* &* +@all")
}

func aclUsers(c *command.Call) {
	c.Reply.Array(1)
	c.Reply.BulkString("default")
}

func aclWhoAmI(c *command.Call) {
	if c.S.Client == nil {
		c.Reply.Null()
		return
	}
	c.Reply.BulkString(c.S.Client.User())
}

func aclLog(c *command.Call) {
	switch {
	case len(c.Args) > 3:
		c.Err(command.UnknownSubcommand(c.Spec, c.Args[1]))
	case len(c.Args) == 3 && c.Is(2, "reset"):
		c.OK()
	case len(c.Args) == 3:
		if _, ok := c.Int(2); ok {
			c.Reply.Array(0)
		}
	default:
		c.Reply.Array(0)
	}
}

func aclSetUser(c *command.Call) {
	c.Err("ERR latchkey has no users but 'default' yet: set its password with CONFIG SET requirepass")
}

func aclFile(c *command.Call) {
	c.Err("ERR latchkey reads no ACL file: the password of the default user is the directive requirepass")
}
