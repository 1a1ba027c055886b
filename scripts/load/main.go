// Command load drives the function chat in many environments at a time on one
// DynamoDB, and fails when a limit did not hold or a record was lost:
//
//	go run ./scripts/load -environments 50 -requests 1000
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"time"

	"gateway/local/onlambda/load"
)

func main() {
	o := load.Options{Log: io.Discard}
	flag.StringVar(&o.Root, "root", ".", "the source tree")
	flag.IntVar(&o.Environments, "environments", 50, "environments of the function, and as many clients; at most 200")
	flag.IntVar(&o.Requests, "requests", 1000, "requests of each of the two parts; at most 100,000")
	flag.DurationVar(&o.Delay, "delay", 300*time.Millisecond, "how long the model takes")
	flag.IntVar(&o.ThrottleEvery, "throttle-every", 40, "after how many calls DynamoDB throttles one; 0: never")
	most := flag.Duration("time", 5*time.Minute, "how long all of it may take")
	show := flag.Bool("log", false, "print what the functions print")
	flag.Parse()
	log.SetFlags(0)
	if o.Environments < 1 || o.Environments > 200 || o.Requests < 2 || o.Requests > 100_000 || *most > time.Hour {
		log.Fatal("-environments must be 1 to 200, -requests 2 to 100000, -time an hour at most")
	}
	if *show {
		o.Log = os.Stderr
	}
	ctx, stop := context.WithTimeout(context.Background(), *most)
	defer stop()
	if err := run(ctx, o); err != nil {
		stop()
		log.Fatal(err)
	}
}

func run(ctx context.Context, o load.Options) (err error) {
	if o.Dir, err = load.Dir(o.Root); err != nil {
		return err
	}
	prices, err := load.ReadPrices(o.Root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	report, err := load.Run(ctx, o)
	if err != nil {
		return err
	}
	if err := report.Print(os.Stdout, prices); err != nil {
		return err
	}
	if err := report.Err(); err != nil {
		return fmt.Errorf("WRONG: %w", err)
	}
	return nil
}
