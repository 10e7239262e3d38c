//go:build !unix

package main

func catchFileSize() {} // there is no such limit
