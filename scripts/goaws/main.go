// Command goaws serves the goaws SQS emulator on loopback, for the test of
// shared/queue/sqs. It is in its own module, so that the gateway's module does not have the
// emulator's dependencies.
//
// goaws's own command listens on every interface; this one listens on a single address,
// which it prints ("listening on 127.0.0.1:41234"). It ends when its standard input is
// closed, so that it does not outlive the test that started it.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"github.com/Admiral-Piett/goaws/app/gosqs"
	"github.com/Admiral-Piett/goaws/app/models"
	"github.com/Admiral-Piett/goaws/app/router"
	"github.com/sirupsen/logrus"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:0", "address to listen on")
	flag.Parse()
	logrus.SetLevel(logrus.ErrorLevel)
	models.CurrentEnvironment.Host = "localhost"
	models.CurrentEnvironment.Region = "eu-west-1"
	models.CurrentEnvironment.AccountID = "queue"
	models.CurrentEnvironment.QueueAttributeDefaults.VisibilityTimeout = 30
	models.CurrentEnvironment.QueueAttributeDefaults.MaximumMessageSize = 1 << 20

	l, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("listening on", l.Addr())
	go gosqs.PeriodicTasks(100*time.Millisecond, make(chan bool))
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends when the test is gone
		os.Exit(0)
	}()
	log.Fatal(http.Serve(l, documented(router.New())))
}

// documented gives the response of SendMessageBatch the documented format: goaws 0.5.4 uses
// the name of the XML element (SendMessageBatchResultEntry) for the list in JSON, where AWS
// and its SDKs have Successful.
func documented(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Amz-Target") != "AmazonSQS.SendMessageBatch" {
			next.ServeHTTP(w, r)
			return
		}
		answer := httptest.NewRecorder()
		next.ServeHTTP(answer, r)
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		_, _ = w.Write(bytes.Replace(answer.Body.Bytes(), []byte(`"SendMessageBatchResultEntry":`), []byte(`"Successful":`), 1))
	})
}
