package main

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/latchkey-proxy/latchkey/cmd/latchkey/plugin"
	"github.com/latchkey-proxy/latchkey/plugins"
	"github.com/latchkey-proxy/latchkey/proxy"
	"github.com/latchkey-proxy/latchkey/proxy/config"
	"github.com/latchkey-proxy/latchkey/scripting"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// rooms are what stands beside the proxy on the store: scripts and plugins.
type rooms struct {
	scripts *scripting.Runner
	plugins *plugins.Host
}

// openRooms makes the rooms as the directives say, and has them follow.
func openRooms(cfg *config.Config, log *slog.Logger) (*rooms, error) {
	engine, err := scripting.New(scripting.Options{
		MaxScriptBytes: int(cfg.Memory("lua-max-script-bytes")),
		CacheScripts:   int(cfg.Int("script-cache-max-entries")),
		CacheBytes:     int(cfg.Memory("script-cache-max-bytes")),
		MaxTotalMemory: cfg.Memory("lua-max-total-memory"),
		VMOnly:         cfg.String("lua-engine") == "vm",
		Version:        redisVersion,
		Logger:         log,
	})
	if err != nil {
		return nil, err
	}
	host, err := plugins.New(plugins.Options{
		Log:          log,
		Dir:          cfg.String("plugin-dir"),
		Allowed:      func(c *command.Call) bool { return cfg.Allowed("enable-module-command", proxy.IsLocal(c)) },
		PutAllowed:   func(c *command.Call) bool { return cfg.Allowed("enable-plugin-put", proxy.IsLocal(c)) },
		MaxTime:      time.Duration(cfg.Int("plugin-max-time")) * time.Millisecond,
		MaxPages:     int(cfg.Int("plugin-max-memory-pages")),
		MaxInstances: int(cfg.Int("plugin-max-instances")),
		Withheld:     withheld(cfg),
		Settings:     moduleSettings{cfg},
		Changed:      func(lines [][]string) { cfg.SetLines("loadmodule", lines) },
		CacheDir:     pluginCache(cfg),
		MaxCompile:   time.Duration(cfg.Int("plugin-max-compile-time")) * time.Millisecond,
		Compile:      plugin.Child(int(cfg.Int("plugin-max-memory-pages"))),
	})
	if err != nil {
		return nil, err
	}
	r := &rooms{
		scripts: scripting.NewRunner(engine, scriptSettings(cfg), longScripts(cfg), log),
		plugins: host,
	}
	for _, name := range []string{
		"lua-max-memory", "lua-max-instructions", "lua-max-call-depth", "lua-max-table-depth", "script-max-time", "script-error-rollback",
		"function-max-libraries", "function-max-functions", "function-max-bytes",
	} {
		cfg.OnChange(name, func(_, _ string) error {
			r.scripts.Set(scriptSettings(cfg))
			return nil
		})
	}
	cfg.OnChange("lua-max-script-bytes", func(_, _ string) error {
		engine.SetMaxScriptBytes(int(cfg.Memory("lua-max-script-bytes")))
		return nil
	})
	cfg.OnChange("lua-max-total-memory", func(_, _ string) error {
		engine.SetMaxTotalMemory(cfg.Memory("lua-max-total-memory"))
		return nil
	})
	cfg.OnChange("lua-engine", func(_, value string) error {
		engine.SetSecondEngine(value != "vm")
		return nil
	})
	for _, name := range []string{"script-cache-max-entries", "script-cache-max-bytes"} {
		cfg.OnChange(name, func(_, _ string) error {
			engine.Cache().SetBounds(int(cfg.Int("script-cache-max-entries")), int(cfg.Memory("script-cache-max-bytes")))
			return nil
		})
	}
	r.keepScripts(cfg, log)
	failures := func(_, _ string) error {
		host.SetMaxFailures(int(cfg.Int("plugin-max-failures")), time.Duration(cfg.Int("plugin-failure-window"))*time.Millisecond)
		return nil
	}
	failures("", "")
	cfg.OnChange("plugin-max-failures", failures)
	cfg.OnChange("plugin-failure-window", failures)
	cfg.OnChange("plugin-max-compile-time", func(_, _ string) error {
		host.SetMaxCompile(time.Duration(cfg.Int("plugin-max-compile-time")) * time.Millisecond)
		return nil
	})
	cfg.OnChange("plugin-max-time", func(_, _ string) error {
		host.SetMaxTime(time.Duration(cfg.Int("plugin-max-time")) * time.Millisecond)
		return nil
	})
	return r, nil
}

// pluginCache is where compiled modules are kept: where plugin-cache-dir says,
// otherwise where this user's programs keep what they can make again; who has no
// such place gets one among the temporary files.
func pluginCache(cfg *config.Config) string {
	if dir := cfg.String("plugin-cache-dir"); dir != "" {
		return dir
	}
	if dir, err := os.UserCacheDir(); err == nil {
		return filepath.Join(dir, "latchkey", "plugins")
	}
	return filepath.Join(os.TempDir(), "latchkey-plugins-"+strconv.Itoa(os.Geteuid()))
}

func scriptSettings(cfg *config.Config) scripting.Settings {
	return scripting.Settings{
		Limits: scripting.Limits{
			Instructions: cfg.Int("lua-max-instructions"),
			Memory:       cfg.Memory("lua-max-memory"),
			Time:         time.Duration(cfg.Int("script-max-time")) * time.Millisecond,
			CallDepth:    int(cfg.Int("lua-max-call-depth")),
			TableDepth:   int(cfg.Int("lua-max-table-depth")),
		},
		KeepOnError: !cfg.Bool("script-error-rollback"),
		Libraries: scripting.LibraryBounds{
			Libraries: int(cfg.Int("function-max-libraries")),
			Functions: int(cfg.Int("function-max-functions")),
			Bytes:     cfg.Memory("function-max-bytes"),
		},
	}
}

// keepScripts has the scripts of SCRIPT LOAD kept in the data directory, if the
// operator has named one: a server that is tried out leaves nothing in the folder
// it was started from. What is wrong with the file stops nobody from being served.
func (r *rooms) keepScripts(cfg *config.Config, log *slog.Logger) {
	name := cfg.String("script-cache-file")
	if name == "" || !cfg.Given("dir") {
		return
	}
	if filepath.Base(name) != name {
		log.Error("scripts will not outlive this run: script-cache-file must be a name without a folder; dir says where it is", "script-cache-file", name)
		return
	}
	if err := r.scripts.KeepIn(filepath.Join(cfg.String("dir"), name)); err != nil {
		log.Error("scripts will not outlive this run", "err", err)
		return
	}
	cfg.OnChange("dir", func(_, dir string) error {
		return r.scripts.MoveTo(filepath.Join(dir, name))
	})
}

// longScripts is how many scripts may run for long at a time.
func longScripts(cfg *config.Config) int {
	if n := int(cfg.Int("max-long-scripts")); n > 0 {
		return n
	}
	return runtime.NumCPU()
}

// serverOptions are those of a server with these rooms.
func (r *rooms) serverOptions(cfg *config.Config, log *slog.Logger) proxy.Options {
	return proxy.Options{
		Config: cfg, Families: r.families(), Modules: r.modules,
		Scripts: r.scriptStats, ScriptTally: r.scriptTally, ResetScripts: r.scripts.ResetTally, Log: log, Version: version,
	}
}

// families are the tables of all rooms but the proxy's own.
func (r *rooms) families() [][]*command.Spec {
	return append(command.Families(), r.scripts.Specs(), r.plugins.Commands())
}

// modules is what HELLO and INFO say of the loaded modules.
func (r *rooms) modules() []proxy.Module {
	var out []proxy.Module
	for _, m := range r.plugins.List() {
		out = append(out, proxy.Module{
			Name: m.Name, Version: m.Version, Path: m.Path, Args: m.Args,
			Calls: m.Calls, Errors: m.Errors, Traps: m.Traps, Running: m.Running, Instances: m.Instances, MemoryBytes: m.MemoryBytes,
			Delivered: m.Delivered, Dropped: m.Dropped, Queued: m.Queued, Timers: m.Timers, Waiting: m.Waiting, Disabled: m.Disabled != "",
		})
	}
	return out
}

// scriptStats is what INFO says of scripts.
func (r *rooms) scriptStats() proxy.ScriptStats {
	cache, file, libs := r.scripts.Engine().Cache().Stats(), r.scripts.File(), r.scripts.LibraryStats()
	engines := r.scripts.Engine().EngineStats()
	return proxy.ScriptStats{
		Compiled: proxy.EngineCounts(engines.Scripts), CompiledLibraries: proxy.EngineCounts(engines.Libraries),
		Cached: int64(cache.Scripts), CachedBytes: int64(cache.Bytes), Evicted: cache.Evicted,
		Libraries: int64(libs.Libraries), Functions: int64(libs.Functions), LibraryBytes: libs.Bytes,
		Long: int64(r.scripts.Long()), Rollbacks: r.scripts.Rollbacks.Load(), Killed: r.scripts.Killed.Load(),
		Undeclared: r.scripts.Undeclared.Load(), Reruns: r.scripts.Reruns.Load(),
		File: file.Path, FileBytes: file.Bytes, FileErr: file.Err,
	}
}

// scriptTally is what INFO says of each script.
func (r *rooms) scriptTally() []proxy.ScriptCounts {
	var out []proxy.ScriptCounts
	for _, n := range r.scripts.Tally() {
		out = append(out, proxy.ScriptCounts(n))
	}
	return out
}

// loadModules loads what loadmodule names, and has the engine's events told to
// modules from now on. Parameters of no module are worth a line in the log: Redis
// does not start with them, but here a module may come later.
func (r *rooms) loadModules(cfg *config.Config, e *command.Engine, log *slog.Logger) error {
	r.plugins.Attach(e)
	for _, line := range cfg.Lines("loadmodule") {
		if err := r.plugins.Load(e.Table, plugins.ParseLoading(line)); err != nil {
			return fmt.Errorf("loadmodule: %w", err)
		}
	}
	for _, s := range cfg.Unclaimed() {
		log.Warn("a parameter is set that no loaded module has", "parameter", s.Directive, "at", s.Origin.String())
	}
	return nil
}

func (r *rooms) close() {
	r.scripts.Close()
	r.plugins.Close()
}
