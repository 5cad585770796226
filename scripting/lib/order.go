package lib

import (
	"slices"
	"strings"

	"github.com/latchkey-proxy/latchkey/scripting/value"
)

// Functions is the name here of the table redis that functions of libraries see.
const Functions = "redis in functions"

// registered has the members of Redis's library tables in the order in which they get
// there, and the size that a table begins with: the order of pairs follows from these.
var registered = map[string]struct {
	size  int
	names string
}{
	"bit":       {12, "tobit bnot band bor bxor lshift rshift arshift rol ror bswap tohex"},
	"cjson":     {0, "encode decode encode_sparse_array encode_max_depth decode_max_depth encode_number_precision encode_keep_buffer encode_invalid_numbers decode_invalid_numbers new null _NAME _VERSION"},
	"cmsgpack":  {0, "pack unpack unpack_one unpack_limit _NAME _VERSION _COPYRIGHT _DESCRIPTION"},
	"coroutine": {6, "create resume running status wrap yield"},
	"math":      {28, "abs acos asin atan2 atan ceil cosh cos deg exp floor fmod frexp ldexp log10 log max min modf pow rad random randomseed sinh sin sqrt tanh tan pi huge mod"},
	"redis":     {0, "call pcall log LOG_DEBUG LOG_VERBOSE LOG_NOTICE LOG_WARNING REDIS_VERSION_NUM REDIS_VERSION setresp sha1hex error_reply status_reply set_repl REPL_NONE REPL_AOF REPL_SLAVE REPL_REPLICA REPL_ALL acl_check_cmd breakpoint debug replicate_commands"},
	Functions:   {0, "call pcall log LOG_DEBUG LOG_VERBOSE LOG_NOTICE LOG_WARNING REDIS_VERSION_NUM REDIS_VERSION setresp sha1hex error_reply status_reply set_repl REPL_NONE REPL_AOF REPL_SLAVE REPL_REPLICA REPL_ALL acl_check_cmd"},
	"string":    {15, "byte char dump find format gfind gmatch gsub len lower match rep reverse sub upper"},
	"struct":    {3, "pack unpack size"},
	"table":     {9, "concat foreach foreachi getn maxn insert remove setn sort"},
}

// Arrange puts the members of a library table where Redis has them, so that pairs finds them
// in the same order; what Redis does not have comes behind. The table is otherwise what it was.
func Arrange(library string, t *value.Table) {
	r, ok := registered[library]
	if !ok {
		return
	}
	names := strings.Fields(r.names)
	var more []string
	for at, k, _ := t.NextAt(0); !k.IsNil(); at, k, _ = t.NextAt(at) {
		if name := k.AsString(); !slices.Contains(names, name) {
			more = append(more, name)
		}
	}
	slices.Sort(more)
	fresh := value.New(t.Account, 0, r.size)
	for _, name := range append(names, more...) {
		if v := t.GetStr(name); !v.IsNil() {
			fresh.SetStr(name, v)
		}
	}
	fresh.Meta, fresh.ReadOnly = t.Meta, t.ReadOnly
	*t = *fresh
}

// Order is the order in which pairs finds the members of a library table in Redis.
func Order(library string) []string { return orders[library] }

var orders = func() map[string][]string {
	all := map[string][]string{"_G": strings.Fields(`string xpcall tostring _VERSION unpack setmetatable next assert tonumber rawequal
		collectgarbage struct getmetatable ARGV _G cjson math pcall KEYS redis type bit cmsgpack select rawset gcinfo rawget loadstring
		table coroutine pairs ipairs error load`)}
	for library, r := range registered {
		t := value.NewTable(0, 0)
		for _, name := range strings.Fields(r.names) {
			t.SetStr(name, value.True)
		}
		Arrange(library, t)
		for at, k, _ := t.NextAt(0); !k.IsNil(); at, k, _ = t.NextAt(at) {
			all[library] = append(all[library], k.AsString())
		}
	}
	return all
}()
