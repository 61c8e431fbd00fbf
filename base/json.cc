#include "base/json.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>
#include <stdexcept>

namespace dtrain {
namespace {

using Library = nlohmann::ordered_json;

}  // namespace

// JsonText: the conversions between texts and values.
struct JsonText {
  // Reader: receives the library's parse events and builds `root` from them.
  class Reader : public nlohmann::json_sax<nlohmann::json> {
   public:
    // `problem` is null when repeated names are allowed.
    Reader(Json* root, size_t max_depth, Json::Problem* problem)
        : root_(root), max_depth_(max_depth), problem_(problem) {}

    bool null() override { return Add(Json()); }
    bool boolean(bool value) override { return Add(Json(value)); }
    bool number_integer(int64_t value) override { return Add(Json(value)); }
    bool number_unsigned(uint64_t value) override { return Add(Json(value)); }
    bool number_float(double value, const std::string&) override { return Add(Json(value)); }
    bool string(std::string& value) override { return Add(Json(std::move(value))); }
    bool binary(nlohmann::json::binary_t&) override { return false; }  // JSON text has no binary values
    bool start_object(size_t) override { return Open(Json::object()); }
    bool start_array(size_t) override { return Open(Json::array()); }
    bool key(std::string& name) override {
      name_ = std::move(name);
      repeated_ = !names_.back().insert(name_).second;
      return !repeated_ || problem_ == nullptr || Refuse(Json::Problem::kRepeated, name_);
    }
    bool end_object() override { return Close(); }
    bool end_array() override { return Close(); }
    bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& error) override {
      const std::string text = error.what();  // "[json.exception.parse_error.101] parse error at line 1, ..."
      const size_t begin = text.find("parse error at");
      return Refuse(Json::Problem::kSyntax, begin == std::string::npos ? text : text.substr(begin));
    }

   private:
    Json* Place(Json value) {
      if (open_.empty()) {
        *root_ = std::move(value);
        return root_;
      }
      Json* const parent = open_.back();
      if (parent->is_array()) {
        auto& elements = std::get<Json::Array>(parent->value_);
        return &elements.emplace_back(std::move(value));
      }
      if (repeated_) return &(parent->Make(name_) = std::move(value));
      auto& members = std::get<Json::Object>(parent->value_);
      return &members.emplace_back(name_, std::move(value)).second;
    }
    bool Add(Json value) {
      if (open_.size() > max_depth_) return Refuse(Json::Problem::kDepth, "it is nested too deep");
      Place(std::move(value));
      return true;
    }
    bool Open(Json value) {
      if (open_.size() > max_depth_) return Refuse(Json::Problem::kDepth, "it is nested too deep");
      open_.push_back(Place(std::move(value)));
      names_.emplace_back();
      return true;
    }
    bool Close() {
      open_.pop_back();
      names_.pop_back();
      return true;
    }
    bool Refuse(Json::Problem::Kind kind, const std::string& text) {
      if (problem_ != nullptr && problem_->kind == Json::Problem::kNone) *problem_ = {kind, text};
      return false;
    }

    Json* const root_;
    const size_t max_depth_;
    Json::Problem* const problem_;
    std::vector<Json*> open_;  // each is an element of the one before; addresses are stable while it is open
    std::vector<std::set<std::string>> names_;  // the names seen in each open object
    std::string name_;                          // the name of the next member
    bool repeated_ = false;                     // name_ occurred before in this object
  };

  static Library ToLibrary(const Json& json) {
    if (json.is_array()) {
      Library array = Library::array();
      for (const Json& element : json) array.push_back(ToLibrary(element));
      return array;
    }
    if (json.is_object()) {
      Library object = Library::object();
      for (const auto& [name, value] : json.items()) {
        object.get_ref<Library::object_t&>().emplace_back(name, ToLibrary(value));
      }
      return object;
    }
    if (const auto* value = std::get_if<bool>(&json.value_)) return *value;
    if (const auto* value = std::get_if<int64_t>(&json.value_)) return *value;
    if (const auto* value = std::get_if<uint64_t>(&json.value_)) return *value;
    if (const auto* value = std::get_if<double>(&json.value_)) return *value;
    if (const auto* value = std::get_if<std::string>(&json.value_)) return *value;
    return nullptr;
  }
};

Json::Json(std::initializer_list<Json> elements) {
  const bool is_object = std::all_of(elements.begin(), elements.end(), [](const Json& element) {
    return element.is_array() && element.size() == 2 && element[0].is_string();
  });
  if (!is_object) {
    value_ = Array(elements);
    return;
  }
  value_ = Object();
  for (const Json& element : elements) Make(element[0].As<std::string>()) = element[1];
}

Json Json::Parse(std::string_view text) {
  Json json;
  JsonText::Reader reader(&json, kMaxDepth, nullptr);
  return nlohmann::json::sax_parse(text.begin(), text.end(), &reader) ? json : Json();
}

Json Json::ParseStrictly(std::string_view text, size_t max_depth, Problem* problem) {
  Json json;
  JsonText::Reader reader(&json, max_depth, problem);
  return nlohmann::json::sax_parse(text.begin(), text.end(), &reader) ? json : Json();
}

std::string Json::dump(int indent) const {
  return JsonText::ToLibrary(*this).dump(indent, ' ', false, Library::error_handler_t::replace);
}

size_t Json::size() const {
  if (const auto* elements = std::get_if<Array>(&value_)) return elements->size();
  return items().size();
}

const Json* Json::begin() const { return is_null() ? nullptr : As<Array>().data(); }

const Json* Json::end() const { return is_null() ? nullptr : begin() + size(); }

const Json& Json::at(size_t index) const {
  const Array& elements = As<Array>();
  if (index >= elements.size()) throw std::logic_error("no element of that number in " + dump());
  return elements[index];
}

void Json::push_back(Json element) {
  if (is_null()) value_ = Array();
  As<Array>();
  std::get<Array>(value_).push_back(std::move(element));
}

const Json::Object& Json::items() const {
  static const Object kNone;
  return is_null() ? kNone : As<Object>();
}

const Json* Json::Find(std::string_view name) const {
  const auto* const members = std::get_if<Object>(&value_);
  if (members == nullptr) return nullptr;
  const auto found = std::find_if(members->begin(), members->end(),
                                  [&](const Member& member) { return member.first == name; });
  return found == members->end() ? nullptr : &found->second;
}

std::string TextIn(const Json& object, std::string_view name) {
  const Json* const found = object.Find(name);
  return found != nullptr && found->is_string() ? found->get<std::string>() : "";
}

std::optional<double> NumberIn(const Json& object, std::string_view name) {
  const Json* const found = object.Find(name);
  if (found == nullptr || !found->is_number()) return std::nullopt;
  const double number = found->get<double>();
  return std::isfinite(number) ? std::make_optional(number) : std::nullopt;
}

const Json& Json::at(std::string_view name) const {
  const Json* const found = Find(name);
  if (found == nullptr) throw std::logic_error("no member " + std::string(name) + " in " + dump());
  return *found;
}

Json& Json::Make(std::string_view name) {
  if (is_null()) value_ = Object();
  As<Object>();
  if (const Json* const found = Find(name)) return *const_cast<Json*>(found);
  return std::get<Object>(value_).emplace_back(std::string(name), Json()).second;
}

void Json::FailAs() const { throw std::logic_error("of another type: " + dump()); }

bool operator==(const Json& a, const Json& b) {
  if (a.is_number() && b.is_number()) {
    return a.is_number_float() || b.is_number_float() ? a.get<double>() == b.get<double>()
                                                      : a.value_ == b.value_;
  }
  if (!a.is_object() || !b.is_object()) return a.value_ == b.value_;
  return a.size() == b.size() &&
         std::all_of(a.items().begin(), a.items().end(), [&](const Json::Member& member) {
           const Json* const other = b.Find(member.first);
           return other != nullptr && member.second == *other;
         });
}

std::ostream& operator<<(std::ostream& out, const Json& value) { return out << value.dump(); }

}  // namespace dtrain
