module github.com/latchkey-proxy/latchkey/plugins/sdk/go

go 1.24
