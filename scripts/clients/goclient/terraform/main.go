// Command terraform drives a small Terraform provider over the plugin protocol against a running
// gateway, as Terraform and OpenTofu do: create, read, a plan that is empty, update, import, destroy,
// and a read of what is gone, for each kind of resource. The resources have the shapes of the
// reference's provider. GATEWAY_URL (ends in /v1) and GATEWAY_ADMIN_KEY specify which gateway to call;
// it exits with 1 if a step fails.
package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

// target is the gateway that all resources call.
var target api

func main() {
	target = api{os.Getenv("GATEWAY_URL"), os.Getenv("GATEWAY_ADMIN_KEY")}
	if target.url == "" || target.key == "" {
		fmt.Fprintln(os.Stderr, "terraform: GATEWAY_URL and GATEWAY_ADMIN_KEY must be set")
		os.Exit(1)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cases, err := prepare(ctx, target)
	if err != nil {
		fmt.Println("FAIL preparing:", err)
		os.Exit(1)
	}
	failed := false
	for _, c := range cases {
		if err := drive(ctx, c); err != nil {
			failed = true
			fmt.Printf("FAIL %s: %v\n", c.title(), err)
			continue
		}
		fmt.Println("ok", c.title())
	}
	if failed {
		os.Exit(1)
	}
}
