// The numbers of the ABI, as docs/PLUGIN-ABI.md has them.

/** What host functions return, and commands. Error and all below it are errors, in every function. */
export const enum Code {
  /** Of a command: the reply was given. */
  OK = 0,
  /** Of lk_wake, without a reply: the client goes on waiting and keeps its place. */
  Again = 1,
  /** The key does not exist. */
  Nil = -1,
  /** r <= Code.Error tells whether r is an error. A command that returns it has the client told, in Redis's words. */
  Error = -100,
  /** The key holds a value of another type. */
  WrongType = -100,
  /** Not declared by the command's key spec, or not granted to the module. */
  Denied = -101,
  /** The server's maxmemory is reached. */
  OOM = -102,
  /** An argument is out of range. */
  Invalid = -103,
  /** The value is no integer, or the result would be none. */
  NotInt = -104,
  /** There are as many as there may be. */
  Limit = -105,
  /** Not possible where the command is called from. */
  Context = -106,
}

/** What Redis answers to an argument that should be an integer. */
export const NOT_INT: string = "ERR value is not an integer or out of range";

/** What Call.pttl returns in place of a time: the key never expires. */
export const NO_TTL: i64 = -1;
/** What Call.pttl returns in place of a time: there is no key. */
export const NO_KEY: i64 = -2;

/** The length of an aggregate that is known only when it ends; replyLen tells it then. */
export const LATER: i32 = -1;

/** Options of Call.set and Call.setKeyState, to be added up. */
export const enum SetFlag {
  None = 0,
  /** Only if the key does not exist. */
  NX = 1,
  /** Only if it does. */
  XX = 2,
  /** Keep the time to live; px must be 0. */
  KeepTTL = 4,
  /** px is a Unix time in milliseconds. */
  At = 8,
}

/** The type of a value. */
export const enum Type {
  None, // the key does not exist
  String,
  List,
  Set,
  Hash,
  ZSet,
  Stream,
  Own, // a state that this module keeps at the key
  Other, // that of another module
}

/** The kind of a reply. */
export const enum Kind {
  Null,
  Int,
  Bulk,
  Simple,
  Error,
  Array,
  Map,
  Set,
  Double,
  Bool,
  BigNumber,
  Verbatim,
}

/** Why lk_wake is called. */
export const enum Reason {
  /** One of the keys was changed, was deleted or has expired. */
  Woken,
  /** The time is over. */
  Timeout,
}

/** The class of a keyspace event. */
export const enum EventClass {
  Generic,
  String,
  List,
  Set,
  Hash,
  ZSet,
  Stream,
  Expired,
  Evicted,
  New,
  Module,
}

/** Something known of the client. */
export const enum ClientField {
  ID,
  Name,
  User,
  Addr,
}

/** How much a log line matters. */
export const enum Level {
  Debug,
  Info,
  Warning,
}
