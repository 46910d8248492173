// Command healthy exits 0 once a service answers: an HTTP address with status 200, a tls:// address with a TLS
// handshake. The Fabric images hold neither curl nor a shell, so health checks and waits share this one program.
package main

import (
	"crypto/tls"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"
)

const pause = 100 * time.Millisecond

func main() {
	wait := flag.Duration("wait", 0, "keep asking for this long (default: ask once)")
	attempt := flag.Duration("attempt", 2*time.Second, "how long one answer may take")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: healthy [-wait 30s] [-attempt 2s] http://HOST:PORT/PATH | tls://HOST:PORT")
		os.Exit(2)
	}
	address, err := url.Parse(flag.Arg(0))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	deadline := time.Now().Add(*wait)
	for {
		if err = ask(address, *attempt); err == nil {
			return
		}
		if time.Now().After(deadline) {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		time.Sleep(pause)
	}
}

// ask speaks to a service of this very host or container, whose certificate its real clients verify: reaching it is all
// that a health check has to show.
func ask(address *url.URL, attempt time.Duration) error {
	unverified := &tls.Config{InsecureSkipVerify: true}
	switch address.Scheme {
	case "tls":
		connection, err := tls.DialWithDialer(&net.Dialer{Timeout: attempt}, "tcp", address.Host, unverified)
		if err != nil {
			return err
		}
		return connection.Close()
	case "http", "https":
		client := http.Client{Timeout: attempt, Transport: &http.Transport{TLSClientConfig: unverified}}
		answer, err := client.Get(address.String())
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("%s answered %s", address, answer.Status)
		}
		return nil
	default:
		return fmt.Errorf("scheme %q is neither http, https nor tls", address.Scheme)
	}
}
