//go:build !wasip1

package main

func main() {} // there is nothing to run but as a guest
