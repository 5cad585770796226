// Package manifest reads and writes what a plugin says about itself: a JSON
// document in the custom section "latchkey.manifest" of its WebAssembly module.
// It can be read before any of the module's code is compiled or run.
//
// [Read] takes the manifest out of a module, [Parse] reads the document alone,
// [Pack] puts one into a module, so that plugins can be written in languages
// that cannot emit custom sections. All of them are strict: a field that is
// unknown, given twice, of the wrong type or out of bounds is an [*Error] that
// names it, says what was found and what would be right. What a manifest asks
// for is a request; granting it is up to who loads the module.
//
//	{
//	  "name": "cad",
//	  "version": "1.0.0",
//	  "abi": {"min": 1, "max": 1},
//	  "commands": [{
//	    "name": "CAD.WASM", "id": 1, "arity": 3, "flags": ["write", "fast"],
//	    "keys": {"first": 1, "last": 1, "step": 1}, "acl": ["string"],
//	    "summary": "Deletes a string if it holds the given value.",
//	    "since": "1.0.0", "group": "string"
//	  }],
//	  "capabilities": {
//	    "read": [""], "write": ["lock:"], "commands": ["GET"],
//	    "timers": false, "events": ["expired"], "state": "none", "block": false, "clients": false
//	  },
//	  "limits": {"fuel": 1000000, "memory_pages": 4, "instances": 2},
//	  "config": [{"name": "ttl", "type": "int", "default": 30000, "summary": "Milliseconds."}]
//	}
package manifest
