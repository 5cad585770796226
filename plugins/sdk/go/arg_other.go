//go:build !wasip1

package latchkey

func (a arg) bytes() []byte { panic(outside) }
