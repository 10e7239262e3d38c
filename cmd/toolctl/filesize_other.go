//go:build !unix

package main

func catchFileSize() {} // this system has no such limit
