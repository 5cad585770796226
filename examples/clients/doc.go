// Package clients has no code of its own: its tests put other people's clients and lock libraries in front of
// latchkey, as their users would, with the settings that they come with. README.md says which, and how to run them.
package clients
