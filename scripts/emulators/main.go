// Command emulators runs the AWS emulators at one endpoint until it is interrupted. Use it as
// AWS_ENDPOINT_URL:
//
//	go run ./scripts/emulators -addr 127.0.0.1:4566
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"gateway/shared/testkit/awsemulator"
)

func main() {
	log.SetFlags(0)
	addr := flag.String("addr", "127.0.0.1:4566", "address to listen on, of this machine alone")
	root := flag.String("root", ".", "the source tree")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, *root, *addr); err != nil {
		stop()
		log.Fatal(err)
	}
}

func run(ctx context.Context, root, addr string) error {
	s, err := awsemulator.Start(ctx, root)
	if err != nil {
		return err
	}
	defer s.Close()
	one, err := s.One()
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: one, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		<-ctx.Done()
		_ = server.Close() // Serve reports the error
	}()
	fmt.Printf("export AWS_ENDPOINT_URL=http://%s AWS_REGION=%s AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test\n", l.Addr(), awsemulator.Region)
	fmt.Fprintln(os.Stderr, "stand-ins of DynamoDB, SQS, S3 and KMS, in memory")
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
