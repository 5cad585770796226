/**
 * Write latchkey plugins in AssemblyScript.
 *
 * A plugin exports the functions that latchkey calls. The two that are alike in all come from here:
 *
 *     import { Call, Code } from "latchkey";
 *     export { lk_abi, lk_arena } from "latchkey";
 *
 *     export function lk_init(): i32 {
 *       return Code.OK;
 *     }
 *
 *     export function lk_command(id: i32, argc: i32, c: Call): i32 {
 *       switch (id) { // as in manifest.json
 *         case 1: return hello(c);
 *       }
 *       return Code.Invalid;
 *     }
 *
 *     function hello(c: Call): i32 {
 *       const r = c.set(c.arg(1), c.arg(2));
 *       if (r <= Code.Error) return r;
 *       c.replySimple("hello");
 *       return Code.OK;
 *     }
 *
 * What to keep in mind:
 *
 *   - A command is a transaction. Return an error, fail() or trap, and all that it wrote is undone.
 *   - Any call may reach any instance of the module: a global is a cache, never a place for what must last.
 *   - Arguments are views that end with the call.
 *   - Call, Bytes, Buffer, Integer, Args and Reply cost no allocation when they are used, and are never collected:
 *     make a `new` one at the top level, once. Strings and arrays are collected, and cost about three times as much.
 *   - A `throw` or a failed assertion goes to the server's log, and traps.
 */
export { Args, Buffer, Bytes, Integer } from "./latchkey/bytes";
export { Call, noFrame } from "./latchkey/call";
export { ClientField, Code, EventClass, Kind, Level, NOT_INT, NO_KEY, NO_TTL, LATER, Reason, SetFlag, Type } from "./latchkey/codes";
export { abort, lk_abi, lk_arena, log } from "./latchkey/guest";
export { Reply } from "./latchkey/reply";
