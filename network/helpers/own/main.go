// Command own gives directories to a user: a fresh named volume belongs to root, and no service runs as root.
package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

func main() {
	if len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, "usage: own UID GID DIRECTORY...")
		os.Exit(2)
	}
	uid, uidErr := strconv.Atoi(os.Args[1])
	gid, gidErr := strconv.Atoi(os.Args[2])
	if uidErr != nil || gidErr != nil {
		fmt.Fprintln(os.Stderr, "UID and GID are numbers")
		os.Exit(2)
	}
	for _, directory := range os.Args[3:] {
		if err := os.MkdirAll(directory, 0o750); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if err := filepath.WalkDir(directory, func(path string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(path, uid, gid)
		}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
