package proxy

import "github.com/latchkey-proxy/latchkey/store/command"

// What Redis answers without cluster mode, in which latchkey always is.
const errNoCluster = "ERR This instance has cluster support disabled"

func noCluster(c *command.Call) { c.Err(errNoCluster) }

// clusterCommands are the Specs of this family, made anew for each server.
func clusterCommands() []*command.Spec {
	return []*command.Spec{
		{
			Name: "readonly", Arity: 1, Flags: command.Loading | command.Stale | command.Fast, Categories: command.CatConnection,
			Access: command.Free, Handler: noCluster, Group: "cluster", Since: "3.0.0", Complexity: "O(1)",
			Summary: "Allows reads from a replica of a cluster; answers the error of a server without one.",
		},
		{
			Name: "readwrite", Arity: 1, Flags: command.Loading | command.Stale | command.Fast, Categories: command.CatConnection,
			Access: command.Free, Handler: noCluster, Group: "cluster", Since: "3.0.0", Complexity: "O(1)",
			Summary: "Ends READONLY; answers the error of a server without a cluster.",
		},
		{
			Name: "asking", Arity: 1, Flags: command.Fast, Categories: command.CatConnection,
			Access: command.Free, Handler: noCluster, Group: "cluster", Since: "3.0.0", Complexity: "O(1)",
			Summary: "Follows an ASK redirection; answers the error of a server without a cluster.",
		},
		{
			Name: "cluster", Arity: -2, Access: command.Free, Group: "cluster", Since: "3.0.0", Complexity: "Depends on subcommand.",
			Summary: "A container for cluster commands; all answer the error of a server without a cluster.",
			Sub:     clusterSubcommands(),
		},
	}
}

// clusterSubcommands are the sub-commands of Redis 7.2 with their arity, so
// that what is wrong with a call is said as Redis says it.
func clusterSubcommands() []*command.Spec {
	const changes = command.Admin | command.Stale | command.NoAsyncLoading
	var specs []*command.Spec
	for _, sub := range []struct {
		name, since string
		arity       int
		flags       command.Flags
	}{
		{"addslots", "3.0.0", -3, changes},
		{"addslotsrange", "7.0.0", -4, changes},
		{"bumpepoch", "3.0.0", 2, changes},
		{"count-failure-reports", "3.0.0", 3, command.Admin | command.Stale},
		{"countkeysinslot", "3.0.0", 3, command.Stale},
		{"delslots", "3.0.0", -3, changes},
		{"delslotsrange", "7.0.0", -4, changes},
		{"failover", "3.0.0", -2, changes},
		{"flushslots", "3.0.0", 2, changes},
		{"forget", "3.0.0", 3, changes},
		{"getkeysinslot", "3.0.0", 4, command.Stale},
		{"help", "5.0.0", 2, command.Loading | command.Stale},
		{"info", "3.0.0", 2, command.Stale},
		{"keyslot", "3.0.0", 3, command.Stale},
		{"links", "7.0.0", 2, command.Stale},
		{"meet", "3.0.0", -4, changes},
		{"myid", "3.0.0", 2, command.Stale},
		{"myshardid", "7.2.0", 2, command.Stale},
		{"nodes", "3.0.0", 2, command.Stale},
		{"replicas", "5.0.0", 3, command.Admin | command.Stale},
		{"replicate", "3.0.0", 3, changes},
		{"reset", "3.0.0", -2, command.Admin | command.Stale | command.NoScript},
		{"saveconfig", "3.0.0", 2, changes},
		{"set-config-epoch", "3.0.0", 3, changes},
		{"setslot", "3.0.0", -4, changes},
		{"shards", "7.0.0", 2, command.Loading | command.Stale},
		{"slaves", "3.0.0", 3, command.Admin | command.Stale},
		{"slots", "3.0.0", 2, command.Loading | command.Stale},
	} {
		specs = append(specs, &command.Spec{
			Name: sub.name, Arity: sub.arity, Flags: sub.flags, Access: command.Free, Handler: noCluster,
			Group: "cluster", Since: sub.since, Complexity: "O(1)", Summary: "Answers that there is no cluster.",
		})
	}
	return specs
}
