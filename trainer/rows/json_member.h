// The text of a member of a JSON object, as it was written: what is passed on unread keeps every digit.
// Thread: any; a free function.
#pragma once

#include <string_view>

namespace dtrain {

// `object`: the text of one, which a parser has taken. Of members of one name the last, as parsers do; empty
// where there is none.
std::string_view MemberText(std::string_view object, std::string_view name);

}  // namespace dtrain
