// Package scripts is a folder of Lua scripts for locks and limits; its test replays them.
package scripts
