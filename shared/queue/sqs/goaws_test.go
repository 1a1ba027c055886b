package sqs

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"gateway/shared/testkit/queuetest"
)

const goawsDir = "../../../scripts/goaws"

// startGoaws builds and starts the emulator and gives its endpoint. It ends with
// the test: its standard input is closed.
func startGoaws(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("-short tests against the strict fake alone")
	}
	binary, err := filepath.Abs(filepath.Join(goawsDir, "bin", "goaws"))
	if err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-o", binary, ".")
	build.Dir, build.Env = goawsDir, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Skipf("NOT PROVED against goaws: it does not build here (is the module proxy out of reach?): %v\n%s", err, out)
	}
	cmd := exec.Command(binary)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("goaws: %v", err)
		}
	})
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if addr, ok := strings.CutPrefix(lines.Text(), "listening on "); ok {
			return "http://" + addr
		}
	}
	t.Fatal("goaws ended before it listened")
	return ""
}

// TestContractAgainstGoaws proves send, receive, delete and extend against
// somebody else's idea of SQS.
func TestContractAgainstGoaws(t *testing.T) {
	t.Parallel()
	endpoint := startGoaws(t)
	client := sqs.NewFromConfig(config(), func(o *sqs.Options) { o.BaseEndpoint = &endpoint })
	// goaws reads its map of queues without its lock: all queues are made before
	// the first message.
	urls := make(chan string, 20)
	for i := range cap(urls) {
		name := fmt.Sprint("q", i)
		if _, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String(name)}); err != nil {
			t.Fatal(err)
		}
		urls <- endpoint + "/queue/" + name
	}
	queuetest.Run(t, queuetest.Harness{
		Lacks: map[string]string{
			queuetest.Groups:      "goaws does not give MessageGroupId back",
			queuetest.Attempts:    "goaws gives ApproximateReceiveCount 1 always",
			queuetest.Twice:       "goaws fails the entry of an absent message",
			queuetest.Delays:      "goaws ignores DelaySeconds in a batch",
			queuetest.DeadLetters: "goaws counts tries in its own way; the strict fake proves this case",
		},
		Open: func(t *testing.T, _ int) queuetest.Opened {
			return queuetest.Opened{Queue: New(config(), <-urls, Endpoint(endpoint))}
		},
	})
}
