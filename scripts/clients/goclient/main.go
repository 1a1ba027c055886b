package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

func main() {
	g := gateway{url: os.Getenv("GATEWAY_URL"), key: os.Getenv("GATEWAY_KEY")}
	if g.url == "" || g.key == "" {
		fmt.Fprintln(os.Stderr, "GATEWAY_URL and GATEWAY_KEY must be set")
		os.Exit(2)
	}
	failed := 0
	for _, t := range targets {
		for _, c := range checks {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			if err := c.run(ctx, g, t); err != nil {
				failed++
				fmt.Printf("FAIL %s of %s: %v\n", c.name, t.provider, err)
			}
			cancel()
		}
	}
	fmt.Printf("%d checks, %d failures\n", len(targets)*len(checks), failed)
	if failed > 0 {
		os.Exit(1)
	}
}
