package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "promlint" {
		os.Exit(lint(os.Stdin))
	}
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

// lint checks metrics in the text format by the rules of Prometheus, and returns the exit code.
func lint(from io.Reader) int {
	problems, err := promlint.New(from).Lint()
	if err != nil {
		fmt.Println("FAIL", err)
		return 1
	}
	for _, p := range problems {
		fmt.Printf("FAIL %s: %s\n", p.Metric, p.Text)
	}
	return min(len(problems), 1)
}
