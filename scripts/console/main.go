// Command console builds the web console from functions/console/web into
// functions/console/dist. `make console` runs it; the result is committed.
package main

import (
	"fmt"
	"os"
)

func main() {
	if err := build("functions/console", "functions/console/dist"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
