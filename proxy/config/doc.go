// Package config holds latchkey's settings: redis.conf directives under their Redis names, and latchkey's own.
//
// One table of Directives says everything there is to know about each setting. The configuration file, standard
// input, command-line flags, CONFIG GET, CONFIG SET, CONFIG REWRITE and docs/CONFIG.md are all served from it, so
// a new setting is one entry in one of the table files.
//
// Load reads the sources into a Config. The program reads values with Bool, Int, Memory, String, Strings and
// Lines, which take no lock and may be called from any goroutine, and hears of CONFIG SET through OnChange.
// Every directive of redis-server 7.0 and 7.2 is known; those without a meaning here are accepted, kept and
// shown, and listed by Ignored. What would be unsafe to accept in silence is answered with a Warning or refused.
//
// The package opens the named files and writes the one that Rewrite is asked for. It starts no goroutine, logs
// nothing and changes nothing else about the process.
package config
