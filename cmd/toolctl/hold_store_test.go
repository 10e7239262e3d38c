package main

import (
	"database/sql"
	"fmt"
	"io"
	"os"
)

// holdStore locks a store for writing until its stdin ends. It runs as its own program.
func holdStore() {
	db, err := sql.Open("sqlite", os.Args[1])
	if err == nil {
		db.SetMaxOpenConns(1)
		_, err = db.Exec("BEGIN IMMEDIATE")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("locked")
	_, _ = io.Copy(io.Discard, os.Stdin)
	_, _ = db.Exec("ROLLBACK")
}
