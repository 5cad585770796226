package command

import (
	"fmt"
	"strings"
	"testing"
)

// shape writes arguments in a compact form: name:type, with TOKEN= before it,
// ? for optional, * for multiple, + for a repeated token.
func shape(args []Argument) string {
	var parts []string
	for _, a := range args {
		s := a.Name + ":" + a.Type
		if a.Token != "" {
			s = a.Token + "=" + s
		}
		if a.Key >= 0 {
			s += fmt.Sprintf("#%d", a.Key)
		}
		if len(a.Args) != 0 {
			s += "(" + shape(a.Args) + ")"
		}
		if a.Optional {
			s += "?"
		}
		if a.Multiple {
			s += "*"
		}
		if a.TokenEach {
			s += "+"
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, " ")
}

func TestArguments(t *testing.T) {
	for _, tc := range []struct{ syntax, want string }{
		{"", ""},
		{"message", "message:string"},
		{"[message]", "message:string?"},
		{"key value", "key:key#0 value:string"},
		{"key [key ...]", "key:key#0*"},
		{"[channel [channel ...]]", "channel:string?*"},
		{"key value [key value ...]", "key:block(key:key#0 value:string)*"},
		{"YES | NO", "yes:oneof(YES=yes:pure-token NO=no:pure-token)"},
		{"<AND | OR> destkey key [key ...]", "and:oneof(AND=and:pure-token OR=or:pure-token) destkey:key#0 key:key#1*"},
		{
			"key value [NX | XX] [GET] [EX seconds | KEEPTTL]",
			"key:key#0 value:string nx:oneof(NX=nx:pure-token XX=xx:pure-token)? GET=get:pure-token? seconds:oneof(EX=seconds:integer KEEPTTL=keepttl:pure-token)?",
		},
		{
			"[protover [AUTH username password] [SETNAME clientname]]",
			"protover:block(protover:integer AUTH=auth:block(username:string password:string)? SETNAME=clientname:string?)?",
		},
		{"[TYPE <NORMAL | PUBSUB>]", "TYPE=normal:oneof(NORMAL=normal:pure-token PUBSUB=pubsub:pure-token)?"},
		{"[PREFIX prefix [PREFIX prefix ...]]", "PREFIX=prefix:string?*+"},
		{"[ID client-id [client-id ...]]", "ID=client-id:integer?*"},
		{"key [A a | B b ...]", "key:key#0 a:oneof(A=a:string B=b:string*)?"},
		{"numkeys key value [key value ...] [NX]", "numkeys:integer key:block(key:key#0 value:string)* NX=nx:pure-token?"},
	} {
		s := Spec{Name: "x", Syntax: tc.syntax, Keys: []KeySpec{{Begin: 1}, {Begin: 2}}}
		args, err := s.Arguments()
		if err != nil {
			t.Errorf("%q: %v", tc.syntax, err)
		} else if got := shape(args); got != tc.want {
			t.Errorf("%q\n got %s\nwant %s", tc.syntax, got, tc.want)
		}
	}
}

func TestArgumentsRefusesWhatCannotBeRead(t *testing.T) {
	for _, syntax := range []string{
		"[", "]", "<", ">", "|", "a |", "| a", "[a", "a]", "<a", "a>", "[a>", "...", "[]", "<>", "a [b [c", "TYPE <", "X <>",
		strings.Repeat("[", 1000) + "a" + strings.Repeat("]", 1000), "[a | ]",
	} {
		s := Spec{Name: "x", Syntax: syntax}
		if args, err := s.Arguments(); err == nil {
			t.Errorf("%q was read as %s", syntax[:min(len(syntax), 40)], shape(args))
		}
	}
}

func TestKeyRange(t *testing.T) {
	for _, tc := range []struct {
		name     string
		keys     []KeySpec
		want     KeyRange
		complete bool
	}{
		{"none", nil, KeyRange{}, true},
		{"one", OneKey(0), KeyRange{1, 1, 1}, true},
		{"all", AllKeys(0), KeyRange{1, -1, 1}, true},
		{"every second", []KeySpec{{Begin: 1, Last: -1, Step: 2}}, KeyRange{1, -1, 2}, true},
		{"two in a row", []KeySpec{{Begin: 1}, {Begin: 2}}, KeyRange{1, 2, 1}, true},
		{"one and the rest", []KeySpec{{Begin: 2}, {Begin: 3, Last: -1}}, KeyRange{2, -1, 1}, true},
		{"a gap", []KeySpec{{Begin: 1}, {Begin: 3}}, KeyRange{1, 1, 1}, false},
		{"counted", []KeySpec{{Begin: 2, Count: true, FirstAt: 1}}, KeyRange{}, false},
		{"incomplete", []KeySpec{{Begin: 1, Flags: KeyIncomplete}}, KeyRange{1, 1, 1}, false},
		{"behind a word", []KeySpec{{Begin: 1}, {Keyword: "STORE", From: 2}}, KeyRange{1, 1, 1}, false},
	} {
		s := Spec{Keys: tc.keys}
		if got, complete := s.KeyRange(); got != tc.want || complete != tc.complete {
			t.Errorf("%s: %v, complete %t; want %v, %t", tc.name, got, complete, tc.want, tc.complete)
		}
	}
}
