module attestree/network/helpers

go 1.24
